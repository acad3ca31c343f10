"""The configurations that the tuner writes are those that the build and the package read."""

import pytest

from buildlib import tile_config
from buildlib.paths import CONFIGS
from buildlib.tile_config import BwdTile, load_config
from tests.scripts.tunelib.kit import bwd_tile, tile, timed
from tunelib.config_file import read_user_rows, render_rows, write_repo_config, write_user_config
from tunelib.fwd_choose import row_of

_CONFIG = load_config(("gfx906",))
_SHIPPED = _CONFIG.fwd


@pytest.fixture
def configs(tmp_path, monkeypatch):
    monkeypatch.setattr(tile_config, "CONFIGS", tmp_path)
    (tmp_path / "gfx906.toml").write_text((CONFIGS / "gfx906.toml").read_text())
    return tmp_path


def _is_of(row, other):
    return (row.head_dim, row.kind) == (other.head_dim, other.kind)


def test_the_rows_of_other_kinds_and_all_else_stay(configs):
    before = load_config(("gfx906",))
    new = row_of(timed(tile(kv="in_turns", rescale="always"), step=7, step_full=9), 'a "quoted" \\ reason')
    write_repo_config(configs / "gfx906.toml", [new], before.fwd)
    after = load_config(("gfx906",))
    assert [row for row in after.fwd if _is_of(row, new)] == [new]
    assert [r for r in after.fwd if not _is_of(r, new)] == [r for r in before.fwd if not _is_of(r, new)]
    assert after.model_copy(update={"fwd": before.fwd}) == before
    text = (configs / "gfx906.toml").read_text()
    for comment in ("# Tiles of the forward on gfx906", "# The cards that the simulator can be"):
        assert comment in text


def test_rows_of_the_backward_stay_beside_those_of_the_forward(configs):
    before = load_config(("gfx906",))
    shape = bwd_tile(head_dim=128, block_n=96).model_dump(exclude_defaults=True)
    new = BwdTile(**shape, for_elements=("f16",), workgroups_per_cu=1, why="because")
    write_repo_config(configs / "gfx906.toml", [new], before.bwd)
    after = load_config(("gfx906",))
    assert [row for row in after.bwd if _is_of(row, new)] == [new]
    assert [r for r in after.bwd if not _is_of(r, new)] == [r for r in before.bwd if not _is_of(r, new)]
    assert after.model_copy(update={"bwd": before.bwd}) == before


def test_the_reason_that_a_person_gave_stays(configs):
    row = next(row for row in _SHIPPED if row.head_dim == 64)
    new = row.model_copy(update={"why": "generated"})
    write_repo_config(configs / "gfx906.toml", [new], _SHIPPED)
    assert next(r for r in load_config(("gfx906",)).fwd if r.name == row.name).why == row.why


@pytest.mark.parametrize("rows", [_SHIPPED, _CONFIG.bwd], ids=["fwd", "bwd"])
def test_writing_the_shipped_rows_changes_no_byte(configs, rows):
    write_repo_config(configs / "gfx906.toml", rows, rows)
    assert (configs / "gfx906.toml").read_text() == (CONFIGS / "gfx906.toml").read_text()


def test_a_user_file_keeps_other_kinds(tmp_path):
    file = tmp_path / "new/folder/gfx906.toml"
    assert read_user_rows(file) == []
    write_user_config(file, _SHIPPED, read_user_rows(file))
    new = row_of(timed(tile(), step=7), "because")
    write_user_config(file, [new], read_user_rows(file))
    rows = read_user_rows(file)
    assert [row for row in rows if _is_of(row, new)] == [new]
    assert {r.name for r in rows} - {new.name} == {r.name for r in _SHIPPED if not _is_of(r, new)}
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_defaults_are_left_out():
    assert "kv" not in render_rows([row_of(timed(tile(), step=7), "because")])
