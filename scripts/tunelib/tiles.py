"""Which tiles are tried."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from pydantic import ValidationError

import flashattn_rocm._C as _C
from buildlib.tile_config import BwdTile, FwdTile, TileConfig, TileShape, kernel_of
from tunelib.products import products_of

_LANES_OF_A_ROW = 16
_KIND = {"kv", "access", "scores", "numbers"}  # policies that are tried with all others at their best


@dataclass(frozen=True)
class Space:
    """What tiles of a pass there are.

    Attributes:
        shape: of a tile.
        rows: of a configuration.
        lds_budget: of a kernel's keys, by core/lds_budget.h.
        axes: the values of each key.
        plain: kinds of kernel that most calls take, which every head dim is tried for.
        usual: rows and keys of blocks in the short list.
        usual_others: the same of kernels that change scores, move single elements or are of fp32.
        every_p_keys: whether the short list has all of p_keys, or the most that fits alone.
        rows_by_element: whether a row can be for some elements; then a tile need fit with the first alone.
    """

    shape: type[TileShape]
    rows: Callable[[TileConfig], Sequence[FwdTile | BwdTile]]
    lds_budget: "Callable[[Mapping[str, Any]], _C.LdsBudget]"
    axes: Mapping[str, tuple[int | str, ...]]
    plain: tuple[tuple[str, ...], ...]
    usual: tuple[tuple[int, ...], tuple[int, ...]]
    usual_others: tuple[tuple[int, ...], tuple[int, ...]]
    every_p_keys: bool = False
    rows_by_element: bool = False

    def all_tiles(self, head_dim: int, config: TileConfig) -> list[TileShape]:
        """Every tile that fits, for each kind of kernel that the head dim has rows of, in a fixed order."""
        kinds = [row.kind for row in self.rows(config) if row.head_dim == head_dim]
        values = [dict(zip(self.axes, chosen, strict=True)) for chosen in product(*self.axes.values())]
        made = [
            self._make(head_dim=head_dim, **dict(zip(self.shape.kind_keys, kind, strict=True)), **each)
            for kind in dict.fromkeys([*self.plain, *kinds])
            for each in values
        ]
        possible = [tile for tile in made if tile is not None and self._is_of_interest(tile)]
        return [tile for tile in possible if self.fits(tile, config)]

    def quick_tiles(self, head_dim: int, config: TileConfig) -> list[TileShape]:
        """The rows of the configuration, and the usual block sizes with all else as it has proved best.

        The rest does not follow from the rows, so a choice among the list repeats after its rows are written.
        """
        rows = [shape_of(row, self.shape) for row in self.rows(config) if row.head_dim == head_dim]
        usual = [tile for tile in self.all_tiles(head_dim, config) if self._is_usual(tile)]
        if not self.every_p_keys:
            # Of tiles that differ in p_keys alone the last has most: fewer parts of P a step.
            usual = list({(t.block_m, t.block_n, t.kv, *t.kind): t for t in usual}.values())
        return list({tile.name: tile for tile in [*rows, *usual]}.values())

    def fits(self, tile: TileShape, config: TileConfig) -> bool:
        """Whether LDS holds the tile, and registers at least its scores and sums."""
        elements = tile.elements[:1] if self.rows_by_element else tile.elements
        budgets = [self.lds_budget(kernel_of(tile, element).keys) for element in elements]
        rows, products = tile.block_m // tile.waves * _LANES_OF_A_ROW // 64, products_of(tile)
        numbers = rows * (len(products.scores) * tile.block_n + sum(products.sums)) // _LANES_OF_A_ROW
        in_lds = all(b["total"] + config.lds.reserve_bytes <= b["limit"] for b in budgets)
        return in_lds and numbers < config.device.vgprs_per_lane

    def _is_usual(self, tile: TileShape) -> bool:
        sizes, blocks = self.usual if tile.kind in self.plain else self.usual_others
        by_default = tile.waves == 4 and set(tile.policies) <= _KIND
        return by_default and tile.block_m in sizes and tile.block_n in blocks

    def _is_of_interest(self, tile: TileShape) -> bool:
        """Changing scores and moving single elements cost more than a policy of the products gains."""
        return tile.kind in self.plain or set(tile.policies) <= _KIND

    def _make(self, **keys: int | str) -> TileShape | None:
        try:
            return self.shape.model_validate(keys)
        except ValidationError:  # rows that waves do not divide, keys of P that do not divide the block
            return None


def shape_of(row: FwdTile | BwdTile, shape: type[TileShape]) -> TileShape:
    """The tile of a row."""
    return shape(**row.model_dump(include=set(shape.model_fields)))
