"""The flashattn-sim command line."""

import re
import struct

import pytest


def test_run_computes_and_writes_outputs(run_program, tool, kernels, tmp_path):
    n = 100
    (tmp_path / "a.bin").write_bytes(struct.pack(f"{n}f", *range(n)))
    (tmp_path / "b.bin").write_bytes(struct.pack(f"{n}f", *[0.25] * n))
    output = tmp_path / "c.bin"
    done = run_program(
        *(tool, "run", kernels, "vadd", "--grid", "2", "--block=64"),
        *("--arg", f"file:{tmp_path}/a.bin", "--arg", f"file:{tmp_path}/b.bin"),
        *("--arg", f"out:{4 * n}:{output}", "--arg", f"i32:{n}"),
    )
    assert done.status == 0, done.err
    assert struct.unpack(f"{n}f", output.read_bytes()) == tuple(i + 0.25 for i in range(n))
    counts = {name: int(count) for name, count in re.findall(r"^  (\w+) +(\d+)$", done.out, re.M)}
    total = int(re.search(r"wave instructions: (\d+)", done.out).group(1))
    assert sum(counts.values()) == total > 0
    assert counts["vmem"] == 2 * 3  # two waves: two loads and a store each


def test_run_packs_structs(run_program, tool, kernels, tmp_path):
    output = tmp_path / "out.bin"
    done = run_program(
        *(tool, "run", kernels, "mixed", "--block", "1", "--arg", "i8:-3"),
        *("--arg", f"{{out:20:{output},i8:5,f64:2.25}}", "--arg", "i16:-7", "--arg", "i64:1048576"),
    )
    assert done.status == 0, done.err
    assert struct.unpack("5f", output.read_bytes()) == (-3.0, 5.0, 2.25, -7.0, 1048576.0)


def test_structs_are_padded_to_their_alignment(run_program, tool, kernels, tmp_path):
    output = tmp_path / "out.bin"
    done = run_program(
        *(tool, "run", kernels, "padded", "--block", "1", "--arg", "{f64:2.5,i8:4}"),
        *("--arg", f"out:4:{output}"),
    )
    assert done.status == 0, done.err
    assert struct.unpack("f", output.read_bytes()) == (6.5,)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_number_of_host_threads_changes_nothing(run_program, tool, kernels, tmp_path, threads):
    output = tmp_path / "out.bin"
    done = run_program(
        *(tool, "run", kernels, "count_groups", "--grid", "5,4,3", "--block", "1"),
        *("--arg", f"out:240:{output}", "--arg", "u32:5", "--arg", "u32:4"),
        FLASHATTN_SIM_THREADS=threads,
    )
    assert done.status == 0, done.err
    assert struct.unpack("60I", output.read_bytes()) == tuple(range(1, 61))


@pytest.mark.parametrize("value", ["0", "two", "-1", "4x"])
def test_bad_number_of_host_threads_is_refused(run_program, tool, kernels, value):
    words = [tool, "run", kernels, "exact_128", "--block", "128", "--arg", "zeros:512"]
    done = run_program(*words, FLASHATTN_SIM_THREADS=value)
    assert done.status == 1
    assert f"FLASHATTN_SIM_THREADS={value}, allowed: numbers of 1 or more" in done.err


def test_first_fault_stops_the_launch(run_program, tool, kernels):
    # Two billion workgroups would take hours; the fault is in the first.
    words = [tool, "run", kernels, "write_beyond", "--grid", "2147483647", "--block", "1"]
    done = run_program(*words, "--arg", "zeros:4", "--arg", "i32:1", "--arg", "i32:1")
    assert done.status == 1
    assert "workgroup:   (0, 0, 0)" in done.err


def test_trace_shows_pc_text_and_written_registers(run_program, tool, kernels):
    words = [tool, "run", kernels, "vadd", "--grid", "3", "--block", "128"]
    words += ["--arg", "zeros:4096", "--arg", "zeros:4096", "--arg", "zeros:4096", "--arg", "i32:300"]
    lines = run_program(*words, "--trace").out.splitlines()
    traced = [line for line in lines if line.startswith("wg ")]
    assert {line.split()[1] for line in traced} == {"0,0,0", "1,0,0", "2,0,0"}
    assert traced[-1].rstrip().endswith("s_endpgm")
    loads = [line for line in traced if "s_load_dword" in line]
    assert loads
    assert all(
        re.search(r"  [0-9a-f]{6}  exec [0-9a-f]{16}  s_load_dword.* s\d+=[0-9a-f]{8}", x) for x in loads
    )
    assert any(re.search(r"v_add_f32.* v\d+\[0\]=00000000", line) for line in traced)
    assert any(re.search(r"v_cmp_gt_i32.* vcc_lo=ffffffff vcc_hi=00000fff", line) for line in traced)
    one = run_program(*words, "--trace-group", "2", "--trace-wave", "1").out.splitlines()
    kept = [line for line in one if line.startswith("wg ")]
    assert kept == [line for line in traced if line.startswith("wg 2,0,0 wave 1 ")]
    assert kept


def test_info_lists_what_kernels_use(run_program, tool, kernels):
    out = run_program(tool, "info", kernels).out
    assert "code object version 5 for gfx906, 12 kernels" in out
    block = out[out.index("\nlds_32k\n") :].splitlines()[2:5]
    assert re.fullmatch(r"  VGPR \d+  SGPR \d+  LDS 32768  scratch 0  spills VGPR 0 SGPR 0", block[0])
    assert block[1] == "  up to 256 threads a workgroup, 8 argument bytes in 1 arguments"
    assert "2 workgroups and 8 waves a CU (limited by LDS)" in block[2]


def test_disasm_prints_labels_and_instructions(run_program, tool, kernels):
    out = run_program(tool, "disasm", kernels).out
    body = out[out.index("\nvadd:\n") :]
    assert re.search(r"^  [0-9a-f]{6}  global_store_dword ", body, re.M)


def test_opcodes_lists_each_once_with_its_class(run_program, tool):
    first, *lines = run_program(tool, "opcodes").out.splitlines()
    rows = [tuple(line.split()) for line in lines]
    assert first == f"{len(rows)} opcodes"
    assert len(set(rows)) == len(rows) > 300
    assert {("valu", "v_dot2_f32_f16"), ("lds", "ds_read_b128"), ("smem", "s_load_dwordx4")} <= set(rows)


def test_fault_gives_status_1_and_its_text(run_program, tool, kernels):
    done = run_program(
        *(tool, "run", kernels, "write_beyond", "--arg", "zeros:256", "--arg", "i32:64", "--arg", "i32:1")
    )
    assert done.status == 1
    assert "write_beyond" in done.err
    assert "global_store_dword" in done.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["run", "FILE", "vadd"], "argument 0 of vadd is missing"),
        (["run", "FILE", "vadd", "--arg", "i32:1"], "argument 0 of vadd has 8 bytes (global_buffer)"),
        (["run", "FILE", "nothing"], "no kernel nothing in the file; it has:"),
        (["run", "FILE", "vadd", "--grid", "0"], "gridDim.x=0, allowed: 1 to 2147483647"),
        (["run", "FILE", "vadd", "--grid", "1,x"], "--grid x is not a number"),
        (["run", "FILE", "vadd", "--lds", "65537"], "--lds 65537, allowed: 0 to 65536"),
        (["run", "FILE", "vadd", "--loud"], "unknown option --loud"),
        (["run", "FILE", "vadd", "--arg"], "--arg needs a value"),
        (["run", "FILE", "exact_128", "--arg", "f16:1"], "unknown type f16"),
        (["run", "FILE"], "KERNEL is missing"),
        (["info", "/nonexistent"], "cannot open /nonexistent"),
        (["opcodes", "FILE"], "unexpected: "),
        (["walk"], "unknown command walk"),
    ],
)
def test_wrong_usage_gives_status_2_and_says_what(run_program, tool, kernels, words, text):
    done = run_program(tool, *(kernels if word == "FILE" else word for word in words))
    assert done.status == 2
    assert text in done.err


def test_help_names_every_option(run_program, tool):
    done = run_program(tool, "--help")
    assert done.status == 0
    for option in (
        "--grid",
        "--block",
        "--lds",
        "--arg",
        "--trace",
        "--trace-group",
        "--trace-wave",
        "zeros:N",
    ):
        assert option in done.out
