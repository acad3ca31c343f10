"""The matrix products of a step: what registers hold, and what is read from LDS."""

from dataclasses import dataclass

from buildlib.tile_config import BwdShape, TileShape


@dataclass(frozen=True)
class Products:
    """Of one step of a workgroup.

    Attributes:
        scores: columns that each product of block_m x block_n sums over: S, in the backward dP too.
        sums: columns of each product that sums over block_n: O; dQ; dV and dK.
    """

    scores: tuple[int, ...]
    sums: tuple[int, ...]

    @property
    def columns(self) -> int:
        """Of all products: each takes a multiply-add for every pair of rows and column."""
        return sum(self.scores) + sum(self.sums)


def products_of(tile: TileShape) -> Products:
    """The products of a tile's kernel."""
    q, v = tile.head_dim, tile.columns_v
    if not isinstance(tile, BwdShape):
        return Products((q,), (v,))
    return Products((q, v), (q,) if tile.gradient == "dq" else (v, q))
