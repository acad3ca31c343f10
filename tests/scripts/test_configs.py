"""configs/*.toml, what is generated from them, and the archs of a build."""

import re

import pytest

from buildlib import kernels, tile_config
from buildlib.archs import DEFAULT, target_archs
from buildlib.errors import BuildError
from buildlib.generate import write_bwd_table, write_fwd_table, write_instances
from buildlib.kernels import build_kernels
from buildlib.options import max_jobs
from buildlib.paths import CONFIGS
from buildlib.tile_config import load_config

_GFX906 = (CONFIGS / "gfx906.toml").read_text()
_ROW = """[[fwd]]
head_dim = 64
block_m = 64
block_n = 64
waves = 4
p_keys = 32
kv = "in_turns"
workgroups_per_cu = 2
clocks = { fixed = 100, step = 10, step_full = 15 }
why = "a test"
"""
_HEAD = _GFX906[: _GFX906.index("\n[[fwd]]") + 1]


@pytest.fixture
def configs(tmp_path, monkeypatch):
    """A folder of configurations, and of what is generated from them."""
    monkeypatch.setattr(tile_config, "CONFIGS", tmp_path)
    monkeypatch.setattr(kernels, "GENERATED", tmp_path / "generated")
    monkeypatch.setattr(kernels, "BUILD", tmp_path / "build")
    (tmp_path / "gfx906.toml").write_text(_HEAD + _ROW)
    return tmp_path


def test_a_row_makes_a_kernel_and_its_sources(configs, tmp_path):
    kernels = load_config(("gfx906",)).fwd_kernels()
    name = "d64_m64n64w4p32_in_turns"
    assert [kernel.name for kernel in kernels] == [f"flashattn_fwd_f16_{name}", f"flashattn_fwd_bf16_{name}"]
    tile = (
        "flashattn::Tile{64, 64, 64, 64, 4, 32, flashattn::KvBuffers::in_turns, "
        "flashattn::Operands::streamed, flashattn::Rescale::lazy, flashattn::Access::chunks, "
        "flashattn::Scores::plain}"
    )
    instances = write_instances(tmp_path, kernels).read_text()
    assert "FLASHATTN_WORKGROUP(256)" in instances
    assert f"flashattn::fwd<{tile}, flashattn::Element::f16>(args);" in instances
    assert "flashattn_attn_probs" not in instances
    with_probs = write_instances(tmp_path, kernels, attn_probs=True).read_text()
    assert "flashattn::attn_probs<flashattn::Element::bf16>(args);" in with_probs
    table = write_fwd_table(tmp_path, kernels).read_text()
    row = f"{tile}, flashattn::Element::bf16, 2, {{100, 10, 15}}, false"
    assert f'{{"{kernels[1].name}", {row}}}' in table


_BWD_ROW = """
[[bwd]]
gradient = "dkdv"
head_dim = 64
block_m = 96
block_n = 64
waves = 4
p_keys = 32
for_elements = ["bf16"]
workgroups_per_cu = 1
why = "a test"
"""


def test_a_row_of_the_backward_makes_kernels_of_its_own(configs, tmp_path):
    (configs / "gfx906.toml").write_text(_HEAD + _ROW + _BWD_ROW)
    (kernel,) = load_config(("gfx906",)).bwd_kernels()
    assert kernel.name == "flashattn_dkdv_bf16_d64_m96n64w4p32"
    instance = f"{kernel.tile.cpp}, flashattn::Element::bf16, flashattn::Gradient::dkdv"
    assert f"flashattn::bwd<{instance}>(args);" in write_instances(tmp_path, [kernel]).read_text()
    assert f'{{"{kernel.name}", {instance}}}' in write_bwd_table(tmp_path, [kernel]).read_text()


def test_a_row_of_the_backward_for_f32_makes_one_kernel(configs):
    row = _BWD_ROW.replace('for_elements = ["bf16"]', 'numbers = "f32"').replace("p_keys = 32", "p_keys = 16")
    (configs / "gfx906.toml").write_text(_HEAD + _ROW + row)
    (kernel,) = load_config(("gfx906",)).bwd_kernels()
    assert (kernel.name, kernel.element) == ("flashattn_dkdv_f32_d64_m96n64w4p16", "f32")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('gradient = "dkdv"', "", r"bwd\.0\.gradient: Field required"),
        ("waves = 4", 'waves = 4\nnumbers = "f32"', "for_elements is for rows of 16-bit numbers"),
        ('gradient = "dkdv"', 'gradient = "dk"', r"bwd\.0\.gradient='dk': Input should be 'dq' or 'dkdv'"),
        (
            "waves = 4",
            'waves = 4\nkv = "apart"',
            "kv is a key of .*fwd.* rows; the backward has no such choice",
        ),
        ("block_n = 64", "block_n = 96", "block_n=96.* 48 rows, of which 256 threads move 32 at once"),
        ('= ["bf16"]', '= ["f64"]', r"bwd\.0\.for_elements\.0='f64': Input should be 'f16' or"),
        (_BWD_ROW, _BWD_ROW + _BWD_ROW, "two rows for dkdv_d64_m96n64w4p32"),
    ],
)
def test_bad_rows_of_the_backward_are_named(configs, old, new, message):
    (configs / "gfx906.toml").write_text(_HEAD + _ROW + _BWD_ROW.replace(old, new))
    with pytest.raises(BuildError, match=message):
        load_config(("gfx906",))


def test_a_row_that_splits_makes_a_second_kernel(configs, tmp_path):
    (configs / "gfx906.toml").write_text(_HEAD + _ROW + "split = true\n")
    kernels = load_config(("gfx906",)).fwd_kernels()
    assert [kernel.name.endswith("_split") for kernel in kernels] == [False, False, True, True]
    instances = write_instances(tmp_path, kernels).read_text()
    assert f"{kernels[2].name}(flashattn::SplitFwdArgs args)" in instances
    assert f"{kernels[2].cpp}, 2, {{100, 10, 15}}, true" in write_fwd_table(tmp_path, kernels).read_text()


def test_an_arch_without_a_file_uses_gfx906(configs):
    assert load_config(("gfx90a",)) == load_config(("gfx906",))


def test_files_of_one_build_must_agree(configs):
    (configs / "gfx900.toml").write_text(_HEAD + _ROW.replace("block_n = 64", "block_n = 32"))
    assert load_config(("gfx900",)).fwd[0].block_n == 32
    with pytest.raises(BuildError, match=r"list different tiles"):
        load_config(("gfx900", "gfx906"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "block_m = 64\nblock_n = 64\nwaves = 4",
            "split = true\nblock_m = 8\nblock_n = 64\nwaves = 2",
            "split=true wants block_m to be a multiple of 16; it is 8",
        ),
        ("why =", 'split = true\nscores = "modified"\nwhy =', "split=true goes with scores='plain'"),
        ("head_dim = 64", "head_dim = 72", r"fwd\.0\.head_dim=72: .*multiple of 16"),
        ("block_m = 64", "block_m = 72", r"block_m=72 must be a multiple of 4 rows in each of waves=4"),
        (
            "block_n = 64\nwaves = 4\np_keys = 32",
            "block_n = 96\nwaves = 4\np_keys = 96",
            r"block_n=96: V has, by pairs of keys, 48 rows, of which 256 threads move 32 at once",
        ),
        ("block_m = 64", "block_m = 48", r"block_m=48: Q has 48 rows, of which 256 threads move 32 at once"),
        ("p_keys = 32", "p_keys = 96", r"p_keys=96 must divide block_n=64"),
        ('"in_turns"', '"mixed"', r"fwd\.0\.kv='mixed': Input should be 'apart' or 'in_turns'"),
        ("waves = 4", "waves = 0", r"fwd\.0\.waves=0: .*greater than 0"),
        ("waves = 4", 'waves = "4"', r"fwd\.0\.waves='4': .*integer"),
        ("waves = 4", "waves = 4\nstages = 2", r"fwd\.0\.stages=2: Extra inputs are not permitted"),
        ('why = "a test"', "", r"fwd\.0\.why: Field required"),
        ("waves = 4", "waves =", r"no valid TOML"),
        (_ROW, _ROW + _ROW, r"two rows for d64_m64n64w4p32_in_turns"),
    ],
)
def test_bad_rows_are_named(configs, old, new, message):
    (configs / "gfx906.toml").write_text((_HEAD + _ROW).replace(old, new))
    with pytest.raises(BuildError, match=message):
        load_config(("gfx906",))


@pytest.mark.parametrize(
    ("row", "reserve", "sum_"),
    [
        (_ROW.replace("block_m = 64", "block_m = 512"), 0, "Q 73728 + KV 9216 + P 40960 + scales 0"),
        (_ROW, 65536, "Q 9216 + KV 9216 + P 5120 + scales 0"),
    ],
)
def test_a_row_beyond_the_lds_budget_stops_the_build(configs, tmp_path, row, reserve, sum_):
    head = _HEAD.replace("reserve_bytes = 0", f"reserve_bytes = {reserve}")
    (configs / "gfx906.toml").write_text(head + row)
    kernel = load_config(("gfx906",)).fwd_kernels()[0]
    total = sum(int(part.split()[1]) for part in sum_.split(" + "))
    text = f"{kernel.name} needs {total} bytes of LDS = {sum_}; with the reserve of {reserve} that is"
    with pytest.raises(BuildError, match=re.escape(text) + " more than a workgroup's limit of 65536"):
        build_kernels(tmp_path / "lib")
    assert not (tmp_path / "lib").exists()


def test_archs(capsys):
    assert target_archs({}) == DEFAULT
    assert target_archs({"PYTORCH_ROCM_ARCH": "gfx906:sramecc+:xnack-;gfx906,gfx90a"}) == ("gfx906", "gfx90a")
    assert target_archs({"PYTORCH_ROCM_ARCH": "gfx942 gfx906"}) == ("gfx906",)
    assert "no kernels for gfx942; building gfx906" in capsys.readouterr().err
    with pytest.raises(BuildError, match=r"PYTORCH_ROCM_ARCH='gfx1100' names no architecture.*gfx906"):
        target_archs({"PYTORCH_ROCM_ARCH": "gfx1100"})


def test_max_jobs(monkeypatch):
    monkeypatch.setenv("MAX_JOBS", "3")
    assert max_jobs() == 3
    monkeypatch.setenv("MAX_JOBS", "0")
    with pytest.raises(BuildError, match="MAX_JOBS='0' must be a positive integer"):
        max_jobs()
