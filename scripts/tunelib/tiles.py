"""Which tiles are tried."""

from itertools import product

from pydantic import ValidationError

import flashattn_rocm._C as _C
from buildlib.tile_config import FwdTile, TileConfig, TileKernel, TileShape

# From the narrowest that a wave can hold to twice what any row ships with: extremes show what binds.
_AXES: dict[str, tuple[int | str, ...]] = {
    "block_m": (8, 16, 32, 48, 64, 96, 128, 192, 256),
    "block_n": (16, 32, 64, 96, 128),
    "waves": (2, 4, 8),
    "p_keys": (16, 32, 64, 96, 128),
    "kv": ("apart", "in_turns"),
    "operands": ("streamed", "on_demand"),
    "rescale": ("lazy", "always"),
}
_LANES_OF_A_ROW = 16
_KIND = {"kv", "access", "scores", "numbers"}  # policies that are tried with all others at their best
_PLAIN = ("chunks", "plain", "16bit")  # access, scores and numbers of the kernels that most calls take
_USUAL_ROWS, _USUAL_KEYS = (32, 48, 64, 96, 128, 192), (32, 64, 128)
_OTHER_ROWS, _OTHER_KEYS = (64,), (32, 64)


def all_tiles(head_dim: int, config: TileConfig) -> list[TileShape]:
    """Every tile that fits, for each kind of kernel that the head dim has rows of, in a fixed order."""
    rows = [row for row in config.fwd if row.head_dim == head_dim]
    kinds = dict.fromkeys([_PLAIN, *((row.access, row.scores, row.numbers) for row in rows)])
    values = [dict(zip(_AXES, chosen, strict=True)) for chosen in product(*_AXES.values())]
    made = [
        _make(head_dim=head_dim, access=access, scores=scores, numbers=numbers, **v)
        for access, scores, numbers in kinds
        for v in values
    ]
    return [tile for tile in made if tile is not None and _is_of_interest(tile) and fits(tile, config)]


def quick_tiles(head_dim: int, config: TileConfig) -> list[TileShape]:
    """The rows of the configuration, and the usual block sizes with all else as it has proved best.

    The rest does not follow from the rows, so a choice among the list repeats after its rows are written.
    """
    rows = [shape_of(row) for row in config.fwd if row.head_dim == head_dim]
    usual = [tile for tile in all_tiles(head_dim, config) if _is_usual(tile)]
    # Of tiles that differ in p_keys alone the last has most: fewer parts of P a step.
    most_p = {
        (tile.block_m, tile.block_n, tile.kv, tile.access, tile.scores, tile.numbers): tile for tile in usual
    }
    return list({tile.name: tile for tile in [*rows, *most_p.values()]}.values())


def shape_of(row: FwdTile) -> TileShape:
    """The tile of a row."""
    return TileShape(**row.model_dump(include=set(TileShape.model_fields)))


def fits(tile: TileShape, config: TileConfig) -> bool:
    """Whether LDS holds the tile, with any element, and registers at least its scores and its part of O."""
    budgets = [_C.fwd_lds_budget(TileKernel(tile=tile, element=element).keys) for element in tile.elements]
    rows = tile.block_m // tile.waves * _LANES_OF_A_ROW // 64
    sums = rows * (tile.block_n + tile.columns_v) // _LANES_OF_A_ROW
    in_lds = all(b["total"] + config.lds.reserve_bytes <= b["limit"] for b in budgets)
    return in_lds and sums < config.device.vgprs_per_lane


def _is_usual(tile: TileShape) -> bool:
    sizes, blocks = (_USUAL_ROWS, _USUAL_KEYS) if _is_plain(tile) else (_OTHER_ROWS, _OTHER_KEYS)
    by_default = tile.waves == 4 and set(tile.policies) <= _KIND
    return by_default and tile.block_m in sizes and tile.block_n in blocks


def _is_of_interest(tile: TileShape) -> bool:
    """Changing scores and moving single elements cost more than a policy of the products gains."""
    return _is_plain(tile) or set(tile.policies) <= _KIND


def _is_plain(tile: TileShape) -> bool:
    return (tile.access, tile.scores, tile.numbers) == _PLAIN


def _make(**keys: int | str) -> TileShape | None:
    try:
        return TileShape.model_validate(keys)
    except ValidationError:  # rows that waves do not divide, keys of P that do not divide the block
        return None
