"""configs/*.toml, what is generated from them, and the archs of a build."""

import pytest

from buildlib import tile_config
from buildlib.archs import SUPPORTED, target_archs
from buildlib.errors import BuildError
from buildlib.generate import write_fwd_instances, write_fwd_table
from buildlib.options import max_jobs
from buildlib.paths import CONFIGS
from buildlib.tile_config import load_config

_GFX906 = (CONFIGS / "gfx906.toml").read_text()
_ROW = '[[fwd]]\nhead_dim = 64\nblock_m = 64\nblock_n = 32\nwaves = 4\nwhy = "a test"\n'
_HEAD = _GFX906[: _GFX906.index("\n[[fwd]]") + 1]


@pytest.fixture
def configs(tmp_path, monkeypatch):
    monkeypatch.setattr(tile_config, "CONFIGS", tmp_path)
    (tmp_path / "gfx906.toml").write_text(_HEAD + _ROW)
    return tmp_path


def test_a_row_makes_two_kernels_and_their_sources(configs, tmp_path):
    kernels = load_config(("gfx906",)).fwd_kernels()
    assert [kernel.name for kernel in kernels] == [
        "flashattn_fwd_f16_d64_causal_m64n32w4",
        "flashattn_fwd_f16_d64_full_m64n32w4",
    ]
    instances = write_fwd_instances(tmp_path, kernels).read_text()
    assert "FLASHATTN_WORKGROUP(256)" in instances
    assert "flashattn::fwd<flashattn::Tile{64, 64, 32, 4}, flashattn::Mask::causal>(args);" in instances
    table = write_fwd_table(tmp_path, kernels).read_text()
    assert '{"flashattn_fwd_f16_d64_full_m64n32w4", flashattn::Tile{64, 64, 32, 4}' in table


def test_an_arch_without_a_file_uses_gfx906(configs):
    assert load_config(("gfx90a",)) == load_config(("gfx906",))


def test_files_of_one_build_must_agree(configs):
    (configs / "gfx900.toml").write_text(_HEAD + _ROW.replace("block_n = 32", "block_n = 64"))
    assert load_config(("gfx900",)).fwd[0].block_n == 64
    with pytest.raises(BuildError, match=r"list different tiles"):
        load_config(("gfx900", "gfx906"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("head_dim = 64", "head_dim = 96", r"fwd\.0\.head_dim=96: Input should be 32, 64 or 128"),
        ("waves = 4", "waves = 0", r"fwd\.0\.waves=0: .*greater than 0"),
        ("waves = 4", 'waves = "4"', r"fwd\.0\.waves='4': .*integer"),
        ("waves = 4", "waves = 4\nstages = 2", r"fwd\.0\.stages=2: Extra inputs are not permitted"),
        ('why = "a test"', "", r"fwd\.0\.why: Field required"),
        ("waves = 4", "waves =", r"no valid TOML"),
        (_ROW, _ROW + _ROW, r"two rows for flashattn_fwd_f16_d64_causal_m64n32w4"),
    ],
)
def test_bad_rows_are_named(configs, old, new, message):
    (configs / "gfx906.toml").write_text((_HEAD + _ROW).replace(old, new))
    with pytest.raises(BuildError, match=message):
        load_config(("gfx906",))


def test_archs(capsys):
    assert target_archs({}) == SUPPORTED
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
