"""`flashattn-rocm profile`: our forward and a stranger's kernel on the simulated card, and its outputs."""

import csv
import dataclasses
import importlib.metadata
import json
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

import flashattn_rocm._C as _C
from flashattn_rocm.__main__ import main
from flashattn_rocm.profiling.launch_file import LaunchFileError, read_launch_file
from flashattn_rocm.profiling.plots import merge_spans
from flashattn_rocm.profiling.profile import CAUSE_NAMES, Issue, Profile, ProfileError, parse_profile
from flashattn_rocm.profiling.report import Report
from flashattn_rocm.profiling.work import ForwardShape, Work

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "saxpy.toml"
COUNTERS = {
    *("VALUBusy", "VALUUtilization", "SALUBusy", "LDSBankConflict"),
    *("FetchSize", "WriteSize", "L2CacheHit", "MemUnitStalled"),
}
SECTIONS = [
    *("time", "sampling", "causes", "instructions", "counters", "places", "occupancy", "bytes", "roofline"),
]


@pytest.fixture(scope="module")
def forward(tmp_path_factory):
    """Folder with the outputs of one small forward: out.txt, p.json, p.csv, plots/."""
    folder = tmp_path_factory.mktemp("forward")
    command = ["profile", "fwd", "--head-dim", "64", "--seqlen-q", "192", "--seqlen-k", "256", "--heads", "4"]
    command += ["--heads-kv", "2", "--causal", "--json", folder / "p.json", "--csv", folder / "p.csv"]
    # Not one that cuts query blocks: it writes more than O and LSE.
    row = next(row for row in _C.fwd_kernels() if "_f16_d64_m64n64" in row["name"] and not row["split"])
    done = run(*command, "--plots", folder / "plots", FLASHATTN_ROCM_FWD_TILE=row["name"])
    assert done.returncode == 0, done.stderr
    folder.joinpath("out.txt").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def report(forward):
    return json.loads((forward / "p.json").read_text())


@pytest.fixture(scope="module")
def profile(report):
    """The forward's profile as the simulator gave it."""
    return parse_profile(json.dumps(report["profile"] | {"timeline": report["timeline"]["rows"]}))


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory):
    """Folder with the example's launch file and its compiled kernel."""
    folder = tmp_path_factory.mktemp("saxpy")
    for file in (EXAMPLE, EXAMPLE.with_suffix(".hip")):
        shutil.copy(file, folder)
    compile_kernel(folder / "saxpy.hip")
    return folder


def compile_kernel(source: Path, *more: str) -> None:
    """Compiles NAME.hip to NAME.co beside it."""
    clang = shutil.which("clang++-19") or shutil.which("clang++")
    assert clang is not None, "no clang++ with the AMDGPU target on PATH (package clang-19)"
    options = ["-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib", "-O3"]
    options += ["--offload-arch=gfx906", *more]
    subprocess.run([clang, *options, source, "-o", source.with_suffix(".co")], check=True)


def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flashattn_rocm", *map(str, arguments)]
    environment = os.environ | variables
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def variant(folder: Path, name: str, old: str, new: str) -> Path:
    """The example's launch file with one change."""
    text = (folder / "saxpy.toml").read_text()
    assert old in text
    path = folder / f"{name}.toml"
    path.write_text(text.replace(old, new, 1))
    return path


def is_drawn(path: Path) -> bool:
    """Whether a PNG has a sensible size and more than one colour."""
    from matplotlib.image import imread

    data = path.read_bytes()
    width, height = struct.unpack(">II", data[16:24])
    pixels = imread(path)
    return data.startswith(b"\x89PNG") and width > 400 and height > 200 and pixels.std() > 0.01


def test_causes_add_up_to_the_total(report, profile):
    causes = report["report"]["causes"]
    assert causes["sum of causes"]["value"] == sum(report["profile"]["causes"].values())
    assert causes["total"]["value"] == profile.clocks_timed * 60 * 4
    assert causes["sum of causes"]["value"] == pytest.approx(causes["total"]["value"], rel=0.01)
    assert set(CAUSE_NAMES.values()) <= set(causes)


def test_instructions_add_up(report):
    instructions = {name: row["value"] for name, row in report["report"]["instructions"].items()}
    total = instructions.pop("all")
    assert total == sum(instructions.values()) == report["profile"]["wave_instructions_timed"]


def test_clocks_of_instructions_add_up_to_those_of_simds_with_waves(profile):
    booked = sum(cost.clocks for cost in profile.by_instruction)
    assert booked == sum(profile.causes.values()) - profile.causes["no_wave"]
    assert sum(cost.lds_conflict_clocks for cost in profile.by_instruction) == profile.lds_conflict_clocks
    barriers = sum(cost.clocks for cost in profile.by_instruction if cost.instruction == "s_barrier")
    assert barriers >= profile.causes["barrier"] > 0


def test_our_kernels_are_attributed_to_source_lines(report, profile):
    places = dict(report["report"]["places"])
    assert places.pop("elsewhere")["value"] > 0
    sources = {file.name: file for file in (EXAMPLE.parents[2] / "csrc").rglob("*.h")}
    ours = [place.split(":") for place in places if place.split(":")[0] in sources]
    assert all(0 < int(line) <= len(sources[file].read_text().splitlines()) for file, line in ours)
    assert {"math.h", "pv.h"} <= {file for file, _ in ours}  # dot2 and the loop of PV
    shown = sum(row["value"] for row in report["report"]["places"].values())
    assert shown == sum(cost.clocks for cost in profile.by_instruction)


def test_report_says_what_it_is(forward):
    text = (forward / "out.txt").read_text()
    assert "simulated" in text
    for word in (*CAUSE_NAMES.values(), *COUNTERS, "limited by", "sum of causes", "TFLOPS", "sampling error"):
        assert word in text


def test_json(report):
    assert report["simulated"] is True
    assert [section for section in report["report"] if section != "lds_conflicts"] == SECTIONS
    assert set(report["report"]["counters"]) >= COUNTERS
    assert report["profile"]["kernel"].startswith("flashattn_fwd_f16_d64_m")
    for section in report["report"].values():
        for row in section.values():
            assert set(row) == {"value", "unit", "note"}


def test_csv_has_the_rows_of_the_json(forward, report):
    with (forward / "p.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["kernel", "section", "name", "value", "unit", "note"]
    expected = [
        (section, name, str(row["value"]), row["unit"])
        for section, names in report["report"].items()
        for name, row in names.items()
    ]
    assert [(r["section"], r["name"], r["value"], r["unit"]) for r in rows] == expected


def test_hbm_bytes_reach_the_floor(report):
    rows = {name: row["value"] for name, row in report["report"]["bytes"].items()}
    assert rows["floor: read once"] == 2 * 64 * (192 * 4 + 2 * 256 * 2)
    assert rows["floor: written once"] == 192 * 4 * (2 * 64 + 4)
    # Whole 64-byte lines; the kernel's arguments and the masked half of K and V are the rest.
    assert 0.5 * rows["floor: read once"] < rows["HBM read"] < 1.2 * rows["floor: read once"]
    assert rows["HBM write"] == pytest.approx(rows["floor: written once"], rel=0.1)


def test_roofline_and_rate_agree(report):
    time, roofline = report["report"]["time"], report["report"]["roofline"]
    flop = 4 * 4 * 64 * sum(min(i + 1 + 256 - 192, 256) for i in range(192))
    rate = flop / (time["simulated time"]["value"] * 1e-3) / 1e12
    assert time["simulated useful rate"]["value"] == pytest.approx(rate)
    assert roofline["reached (simulated)"]["value"] == pytest.approx(rate)
    assert rate < roofline["attainable"]["value"] < 26.5


@pytest.mark.parametrize("name", ["roofline", "causes", "timeline"])
def test_plots_are_drawn(forward, name):
    assert is_drawn(forward / "plots" / f"{name}.png")


def test_timeline_shows_loads_and_computing_of_every_wave(profile):
    assert {issue.kind for issue in profile.timeline} >= {"valu", "scalar", "smem", "vmem", "lds", "barrier"}
    assert {issue.simd for issue in profile.timeline} == {0, 1, 2, 3}
    assert all(0 < issue.clocks < profile.clocks_timed for issue in profile.timeline)
    # Oldest first within a wave, but for barriers, which are known only when they open.
    clocks = [i.clock for i in profile.timeline if i.wave == 0 and i.kind != "barrier"]
    assert clocks == sorted(clocks)


def test_a_vector_instruction_holds_its_simd_alone(profile):
    for simd in range(4):
        issues = [i for i in profile.timeline if i.kind == "valu" and i.simd == simd]
        assert sum(clocks for _, clocks in merge_spans(issues)) == sum(i.clocks for i in issues)


def test_spans_are_merged():
    issues = [Issue(0, 0, clock, clocks, "lds") for clock, clocks in [(0, 10), (4, 2), (10, 5), (20, 1)]]
    assert merge_spans(issues) == [(0, 15), (20, 1)]


@pytest.mark.parametrize(
    ("seqlen_q", "seqlen_k"), [(1, 1), (7, 7), (3, 9), (9, 3), (5, 1), (1, 5)], ids=lambda n: str(n)
)
def test_visible_pairs(seqlen_q, seqlen_k):
    shape = ForwardShape(64, seqlen_q, seqlen_k, 1, 1, 1, causal=True)
    expected = sum(j <= i + seqlen_k - seqlen_q for i in range(seqlen_q) for j in range(seqlen_k))
    assert shape.visible_pairs() == expected
    assert dataclasses.replace(shape, causal=False).visible_pairs() == seqlen_q * seqlen_k


def test_causes_that_do_not_add_up_are_refused(profile: Profile):
    off = int(0.02 * profile.simd_clocks)
    spoiled = dataclasses.replace(profile, causes=profile.causes | {"valu": profile.causes["valu"] + off})
    with pytest.raises(
        ProfileError, match=r"add up to \d+, but its SIMDs had \d+ clocks: they differ by 2.0%"
    ):
        Report(spoiled)


def test_bytes_of_a_sampled_launch_are_those_of_all_workgroups(profile: Profile):
    assert profile.bytes_of_launch == profile.bytes
    assert "all workgroups timed" in Report(profile).section("bytes")["HBM read"].note
    groups, moved = 3 * profile.groups, dataclasses.replace(profile.bytes, hbm_read=12345)
    sampled = dataclasses.replace(profile, groups=groups, bytes_of_launch=moved, sampling_error=0.02)
    report = Report(sampled, Work(useful_flop=1e9))
    assert report.section("bytes")["HBM read"].value == 12345
    assert "extrapolated" in report.section("bytes")["HBM read"].note
    assert report.section("sampling")["workgroups timed"].note.startswith(f"of {groups}: chosen")
    assert report.section("sampling")["stated sampling error of time"].value == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"kernel": "k"}'])
def test_other_json_is_no_profile(text):
    with pytest.raises(ProfileError, match="no profile of the simulator"):
        parse_profile(text)


def profile_of_heads(heads, path):
    shape = ["--seqlen-q", "256", "--heads", str(heads), "--heads-kv", "1"]
    assert main(["profile", "fwd", *shape, "--json", str(path)]) == 0
    return json.loads(path.read_text())


def test_large_grids_are_sampled(tmp_path, capsys, monkeypatch):
    # Four query blocks a head, and none of them is cut.
    monkeypatch.setenv("FLASHATTN_ROCM_FWD_TILE", "flashattn_fwd_f16_d128_m64n32w4p32_in_turns")
    report = profile_of_heads(128, tmp_path / "sampled.json")
    assert report["profile"]["groups"] == 512 > report["profile"]["groups_timed"] >= 60
    assert report["report"]["sampling"]["stated sampling error of time"]["value"] > 0
    assert "of 512: chosen" in capsys.readouterr().out
    # 60 CUs hold two of these workgroups each: 480 fill the card four times and are all timed, 512 need a
    # fifth round of the same length, although it is part-filled.
    whole = profile_of_heads(120, tmp_path / "whole.json")["profile"]
    assert whole["groups_timed"] == 480
    assert report["profile"]["clocks"] == pytest.approx(5 / 4 * whole["clocks"], rel=0.05)


@pytest.mark.long
def test_one_command_profiles_4096_keys_of_head_dim_128(tmp_path):
    done = run("profile", "fwd", "--head-dim", "128", "--seqlen-q", "4096", "--json", tmp_path / "p.json")
    assert done.returncode == 0, done.stderr
    report = json.loads((tmp_path / "p.json").read_text())
    causes = report["report"]["causes"]
    assert causes["sum of causes"]["value"] == pytest.approx(causes["total"]["value"], rel=0.01)
    assert report["profile"]["groups_timed"] < report["profile"]["groups"] == 256


def test_strangers_kernel(saxpy, tmp_path, capsys):
    outputs = ["--json", tmp_path / "p.json", "--plots", tmp_path / "plots"]
    assert main(["profile", "code-object", str(saxpy / "saxpy.toml"), *map(str, outputs)]) == 0
    report = json.loads((tmp_path / "p.json").read_text())
    assert report["profile"]["kernel"] == "saxpy"
    assert report["profile"]["groups"] == report["profile"]["groups_timed"] == 480
    read, written = report["profile"]["bytes"]["hbm_read"], report["profile"]["bytes"]["hbm_write"]
    assert read == pytest.approx(2 * 4 * 122_880, rel=0.01)
    assert written == 4 * 122_880
    assert report["report"]["roofline"]["attainable"]["note"] == "bound by HBM bandwidth"
    assert "limited by wave slots" in capsys.readouterr().out
    assert is_drawn(tmp_path / "plots" / "timeline.png")


CONFLICTING = """
extern "C" __attribute__((global)) void column(float* out) {
  static __attribute__((shared)) float tile[32 * 64];
  const unsigned lane = __builtin_amdgcn_workitem_id_x();
  tile[lane] = 1.0f;
  tile[32 * lane] = 2.0f;
  __builtin_amdgcn_s_barrier();
  out[lane] = tile[lane];
}
"""


@pytest.mark.parametrize(("debug", "place"), [(["-g"], "column.hip:6"), ([], ".text+0x")])
def test_bank_conflicts_are_named_by_source_line(saxpy, tmp_path, debug, place):
    source = tmp_path / "column.hip"
    source.write_text(CONFLICTING)
    compile_kernel(source, *debug)
    (tmp_path / "column.toml").write_text(
        'code_object = "column.co"\nkernel = "column"\ngrid = [1]\nblock = [64]\n'
        '[[arguments]]\nkind = "buffer"\ndtype = "f32"\nsize = 64\nfill = "zeros"\n'
    )
    json_file = tmp_path / "p.json"
    assert main(["profile", "code-object", str(tmp_path / "column.toml"), "--json", str(json_file)]) == 0
    report = json.loads(json_file.read_text())
    conflicts = report["report"]["lds_conflicts"]
    (name, row), *others = conflicts.items()
    assert name.startswith(place)
    assert "ds_write" in row["note"]
    assert not others
    assert row["value"] == report["profile"]["lds_conflict_clocks"] > 0


def test_without_useful_flop_there_is_no_roofline(saxpy, tmp_path):
    launch = variant(saxpy, "no_flop", "useful_flop = 245_760", "")
    main(
        ["profile", "code-object", str(launch), "--json", str(tmp_path / "p.json"), "--plots", str(tmp_path)]
    )
    assert "roofline" not in json.loads((tmp_path / "p.json").read_text())["report"]
    assert not (tmp_path / "roofline.png").exists()
    assert (tmp_path / "causes.png").exists()


def test_buffer_from_a_file(saxpy, capsys):
    (saxpy / "x.bin").write_bytes(bytes(4 * 122_880))
    assert (
        main(["profile", "code-object", str(variant(saxpy, "file", 'fill = "random"', 'file = "x.bin"'))])
        == 0
    )
    (saxpy / "x.bin").write_bytes(bytes(100))
    assert main(["profile", "code-object", str(saxpy / "file.toml")]) == 1
    assert "x.bin has 100 bytes; 122880 of f32 are 491520" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[480]", "[480, 1, 1, 1]", "grid: List should have at most 3 items"),
        ("[256]", "[0]", r"block.0: Input should be greater than 0; got 0"),
        ('kernel = "saxpy"', "", "kernel: Field required"),
        ('kernel = "saxpy"', 'kernel = "saxpy"\nlds = 3', "lds: Extra inputs are not permitted"),
        ('dtype = "f32"', 'dtype = "bf8"', "dtype: Input should be 'f16', 'f32'"),
        ('fill = "random"', "", 'either fill \\("zeros" or "random"\\) or file'),
        ('fill = "random"', 'fill = "ones"', "fill: Input should be 'zeros' or 'random'; got 'ones'"),
        ('kind = "scalar"', 'kind = "struct"', "tag 'struct' .* 'buffer', 'scalar'"),
        ('"i32"\nvalue = 122_880', '"i8"\nvalue = 300', "value 300.* is no i8"),
        ("[480]", "[480", "Unclosed array"),
    ],
)
def test_launch_file_errors_name_the_key(saxpy, old, new, message):
    path = variant(saxpy, "wrong", old, new)
    with pytest.raises(LaunchFileError, match=message) as caught:
        read_launch_file(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"saxpy.co"', '"none.co"', "none.co is no file"),
        ('"saxpy.co"', '"saxpy.toml"', "hipModuleLoad failed: hipError"),
        ('kernel = "saxpy"', 'kernel = "daxpy"', "hipModuleGetFunction failed: hipErrorNotFound"),
        ("[256]", "[2048]", "hipModuleLaunchKernel failed: hipError"),
        ("size = 122_880", "size = 1_000", "hipModuleLaunchKernel failed: hipErrorLaunchFailure"),
        (
            '[[arguments]]  # n\nkind = "scalar"\ndtype = "i32"\nvalue = 122_880',
            "",
            "hipModuleLaunchKernel failed",
        ),
    ],
    ids=[
        "no code object",
        "not a code object",
        "no such kernel",
        "too large a block",
        "fault",
        "missing argument",
    ],
)
def test_launches_that_fail_say_why(saxpy, capsys, old, new, message):
    assert main(["profile", "code-object", str(variant(saxpy, "failing", old, new))]) == 1
    error = capsys.readouterr().err
    assert error.startswith("flashattn-rocm: error: ")
    assert message in error


def test_missing_launch_file(capsys, tmp_path):
    assert main(["profile", "code-object", str(tmp_path / "none.toml")]) == 1
    assert "none.toml" in capsys.readouterr().err


def test_missing_matplotlib_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(["profile", "fwd", "--seqlen-q", "64", "--heads", "1", "--plots", str(tmp_path)]) == 1
    assert "pip install 'flashattn-rocm[profile]'" in capsys.readouterr().err


def test_options_choose_kernel_and_peak(tmp_path):
    """Each of them costs something, and fp32 is set against its own peak and its own bytes."""
    reports = {}
    for name, more in {
        "plain": [],
        "alibi": ["--alibi"],
        "dropout": ["--dropout-p", "0.1"],
        "fp32": ["--dtype", "fp32"],
        "bf16": ["--dtype", "bf16"],
    }.items():
        file = tmp_path / f"{name}.json"
        shape = ["--head-dim", "64", "--seqlen-q", "128", "--heads", "2", *more]
        assert main(["profile", "fwd", *shape, "--json", str(file)]) == 0
        reports[name] = json.loads(file.read_text())
    clocks = {name: report["profile"]["clocks"] for name, report in reports.items()}
    assert clocks["plain"] < clocks["alibi"] < clocks["dropout"]
    kernels = {name: report["profile"]["kernel"] for name, report in reports.items()}
    assert [kernels[name].split("_")[2] for name in ("plain", "fp32", "bf16")] == ["f16", "f32", "bf16"]
    assert "modified" in kernels["alibi"]
    attainable = {name: each["report"]["roofline"]["attainable"]["value"] for name, each in reports.items()}
    assert attainable["fp32"] == pytest.approx(attainable["plain"] / 2)


def test_wrong_head_counts_are_reported(capsys):
    assert main(["profile", "fwd", "--seqlen-q", "8", "--heads", "3", "--heads-kv", "2"]) == 1
    assert "flashattn-rocm: error: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["profile"],
        ["profile", "fwd", "--head-dim", "0"],
        ["profile", "fwd", "--batch", "0"],
        ["profile", "fwd", "--dropout-p", "1"],
        ["profile", "fwd", "--dtype", "fp64"],
        ["info", "--no"],
    ],
)
def test_wrong_usage_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage: flashattn-rocm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "profile"),
        (["profile"], "code-object"),
        (["profile", "fwd"], "--plots"),
        (["profile", "code-object"], "LAUNCH.toml"),
        (["sim"], "validate"),
    ],
)
def test_help(arguments, word, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--help"])
    assert caught.value.code == 0
    assert word in capsys.readouterr().out


def test_validate_gets_its_own_arguments(monkeypatch):
    from flashattn_rocm.sim import validate

    given = []
    monkeypatch.setattr(validate, "main", lambda argv: given.append(argv) or 3)
    assert main(["sim", "validate", "--json", "file", "--help"]) == 3
    assert given == [["--json", "file", "--help"]]


def test_console_script_is_this_command():
    scripts = importlib.metadata.entry_points(group="console_scripts", name="flashattn-rocm")
    assert [script.value for script in scripts] == ["flashattn_rocm_doctor.console:main"]
