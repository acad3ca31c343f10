"""Which tiles the tuner tries."""

import pytest

import flashattn_rocm._C as _C
from buildlib.tile_config import kernel_of, load_config
from flashattn_rocm.manifest import read_manifest
from tests.scripts.tunelib.kit import bwd_tile, tile
from tunelib.passes import BACKWARD, FORWARD, PASSES

_CONFIG = load_config(("gfx906",))
_FITS = FORWARD.space.fits


def _head_dims(tuned):
    return sorted({row.head_dim for row in tuned.space.rows(_CONFIG)})


_EACH = pytest.mark.parametrize(
    ("tuned", "head_dim"),
    [
        pytest.param(tuned, head_dim, id=f"{tuned.name}-{head_dim}")
        for tuned in PASSES.values()
        for head_dim in _head_dims(tuned)
    ],
)


def _lds(shape, element="f16"):
    return _C.fwd_lds_budget(kernel_of(shape, element).keys)["total"]


@_EACH
def test_shipped_rows_are_among_the_tiles(tuned, head_dim):
    space = tuned.space
    shipped = {row.name for row in space.rows(_CONFIG) if row.head_dim == head_dim}
    for tiles in (space.all_tiles(head_dim, _CONFIG), space.quick_tiles(head_dim, _CONFIG)):
        names = [each.name for each in tiles]
        assert shipped <= set(names)
        assert len(set(names)) == len(names)


@_EACH
def test_the_short_list_is_the_same_after_a_choice_among_it(tuned, head_dim):
    space = tuned.space
    tiles = space.quick_tiles(head_dim, _CONFIG)
    rows = [row for row in space.rows(_CONFIG) if row.head_dim == head_dim]
    plain = [tile for tile in tiles if tile.kind in space.plain]
    chosen = [rows[0].model_copy(update=tile.model_dump()) for tile in plain[-3:]]
    chosen += [row for row in rows if row.kind not in space.plain]
    after = space.quick_tiles(head_dim, _CONFIG.model_copy(update={tuned.name: tuple(chosen)}))
    usual = {tile.name for tile in after}
    assert usual <= {tile.name for tile in tiles} <= usual | {row.name for row in rows}


@pytest.mark.parametrize("head_dim", _head_dims(FORWARD))
def test_the_short_list_has_a_tile_a_usual_size(head_dim):
    """Six of rows and three of keys, two of other kinds of kernel, each with K and V apart and in turns."""
    shipped = [row for row in _CONFIG.fwd if row.head_dim == head_dim]
    other_kinds = {row.kind for row in shipped} - set(FORWARD.space.plain)
    most = 2 * (6 * 3 + 2 * len(other_kinds)) + len(shipped)
    assert len(FORWARD.space.quick_tiles(head_dim, _CONFIG)) <= most


# With 192 rows of 128 columns Q and P alone pass 64 KiB; the backward has the rows of two operands.
@pytest.mark.parametrize(
    ("tuned", "head_dim", "most_rows"),
    [
        (FORWARD, 128, 128),
        (FORWARD, 64, 256),
        (FORWARD, 32, 256),
        (BACKWARD, 128, 64),
        (BACKWARD, 64, 128),
        (BACKWARD, 32, 256),
    ],
)
def test_every_tile_fits_and_extremes_are_there(tuned, head_dim, most_rows):
    tiles = tuned.space.all_tiles(head_dim, _CONFIG)
    element = 0 if tuned.space.rows_by_element else -1
    budgets = [tuned.space.lds_budget(kernel_of(each, each.elements[element]).keys) for each in tiles]
    assert all(budget["total"] <= budget["limit"] == 65536 for budget in budgets)
    assert min(each.block_m for each in tiles) == 8
    assert max(each.block_m for each in tiles) == most_rows
    assert {each.waves for each in tiles} == {2, 4, 8}


def test_what_does_not_fit_is_left_out():
    by_lds = tile(head_dim=128, block_m=192, block_n=64)
    assert _lds(by_lds) > 65536
    assert not _FITS(by_lds, _CONFIG)
    by_registers = tile(head_dim=32, block_m=256, block_n=128, waves=2)
    assert _lds(by_registers) <= 65536
    assert not _FITS(by_registers, _CONFIG)


def test_registers_of_the_backward_hold_two_products_of_scores_and_the_sums():
    """128 x 64 of four waves: 8 rows a lane, of which S and dP have 4 keys each, dV and dK 4 columns."""
    shape = bwd_tile(head_dim=64, block_m=128, block_n=64)
    config = _CONFIG.model_copy(update={"device": _CONFIG.device.model_copy(update={"vgprs_per_lane": 128})})
    assert not BACKWARD.space.fits(shape, config)
    assert BACKWARD.space.fits(shape.model_copy(update={"gradient": "dq"}), config)


def test_the_reserve_counts():
    just = tile(head_dim=128, block_m=128, block_n=64, kv="in_turns")
    spare = 65536 - _lds(just, "bf16")
    assert spare < 65536 - _lds(just)
    assert _FITS(just, _CONFIG)
    for reserve, expected in ((spare, True), (spare + 1, False)):
        config = _CONFIG.model_copy(update={"lds": _CONFIG.lds.model_copy(update={"reserve_bytes": reserve})})
        assert _FITS(just, config) == expected


def test_lds_of_every_kernel_is_what_the_code_object_says():
    for row in _C.fwd_kernels():
        assert _C.fwd_lds_budget(row)["total"] == row["lds_bytes"]


def test_lds_of_every_kernel_of_the_backward_is_what_the_code_object_says():
    found = {row["name"]: row["lds_bytes"] for row in read_manifest()["archs"]["gfx906"]}
    for kernel in _CONFIG.bwd_kernels():
        assert _C.bwd_lds_budget(kernel.keys)["total"] == found[kernel.name]
