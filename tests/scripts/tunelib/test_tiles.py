"""Which tiles the tuner tries."""

import pytest

import flashattn_rocm._C as _C
from buildlib.tile_config import TileKernel, load_config
from tests.scripts.tunelib.kit import tile
from tunelib.tiles import all_tiles, fits, quick_tiles

_CONFIG = load_config(("gfx906",))
_HEAD_DIMS = sorted({row.head_dim for row in _CONFIG.fwd})


def _lds(shape, element="f16"):
    return _C.fwd_lds_budget(TileKernel(tile=shape, element=element).keys)["total"]


@pytest.mark.parametrize("head_dim", _HEAD_DIMS)
def test_shipped_rows_are_among_the_tiles(head_dim):
    shipped = {row.name for row in _CONFIG.fwd if row.head_dim == head_dim}
    for tiles in (all_tiles(head_dim, _CONFIG), quick_tiles(head_dim, _CONFIG)):
        names = [each.name for each in tiles]
        assert shipped <= set(names)
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("head_dim", _HEAD_DIMS)
def test_the_short_list_is_the_same_after_a_choice_among_it(head_dim):
    tiles = quick_tiles(head_dim, _CONFIG)
    shipped = [row for row in _CONFIG.fwd if row.head_dim == head_dim]
    plain = [tile for tile in tiles if (tile.scores, tile.numbers) == ("plain", "16bit")]
    chosen = [shipped[0].model_copy(update=tile.model_dump()) for tile in plain[-3:]]
    chosen += [row for row in shipped if (row.scores, row.numbers) != ("plain", "16bit")]
    after = quick_tiles(head_dim, _CONFIG.model_copy(update={"fwd": tuple(chosen)}))
    usual = {tile.name for tile in after}
    assert usual <= {tile.name for tile in tiles} <= usual | {row.name for row in shipped}


@pytest.mark.parametrize("head_dim", _HEAD_DIMS)
def test_the_short_list_has_a_tile_a_usual_size(head_dim):
    """Six of rows and three of keys, two of other kinds of kernel, each with K and V apart and in turns."""
    shipped = [row for row in _CONFIG.fwd if row.head_dim == head_dim]
    other_kinds = {(row.access, row.scores, row.numbers) for row in shipped} - {("chunks", "plain", "16bit")}
    most = 2 * (6 * 3 + 2 * len(other_kinds)) + len(shipped)
    assert len(quick_tiles(head_dim, _CONFIG)) <= most


# With 192 rows of 128 columns Q and P alone pass 64 KiB.
@pytest.mark.parametrize(("head_dim", "most_rows"), [(128, 128), (64, 256), (32, 256)])
def test_every_tile_fits_and_extremes_are_there(head_dim, most_rows):
    tiles = all_tiles(head_dim, _CONFIG)
    assert all(_lds(each, "bf16") <= 65536 for each in tiles)
    assert min(each.block_m for each in tiles) == 8
    assert max(each.block_m for each in tiles) == most_rows


def test_what_does_not_fit_is_left_out():
    by_lds = tile(head_dim=128, block_m=192, block_n=64)
    assert _lds(by_lds) > 65536
    assert not fits(by_lds, _CONFIG)
    by_registers = tile(head_dim=32, block_m=256, block_n=128, waves=2)
    assert _lds(by_registers) <= 65536
    assert not fits(by_registers, _CONFIG)


def test_the_reserve_counts():
    just = tile(head_dim=128, block_m=128, block_n=64, kv="in_turns")
    spare = 65536 - _lds(just, "bf16")
    assert spare < 65536 - _lds(just)
    assert fits(just, _CONFIG)
    for reserve, expected in ((spare, True), (spare + 1, False)):
        config = _CONFIG.model_copy(update={"lds": _CONFIG.lds.model_copy(update={"reserve_bytes": reserve})})
        assert fits(just, config) == expected


def test_lds_of_every_kernel_is_what_the_code_object_says():
    for row in _C.fwd_kernels():
        assert _C.fwd_lds_budget(row)["total"] == row["lds_bytes"]
