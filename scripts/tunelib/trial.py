"""What is known of one tile after it was tried."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from buildlib.tile_config import BwdShape, Clocks, Element, TileShape

# Workgroups of a tile's kernel with an element that fit a compute unit; 0: it does not build for all archs.
Fit = Callable[[TileShape, Element], int]


class Verdict(str, Enum):
    """How a trial ended."""

    TIMED = "timed"
    SPILLS = "spills"
    NO_COMPILE = "does not compile"
    WRONG = "wrong result"
    FAILED = "launch failed"
    CRASHED = "ended the tuner"


@dataclass(frozen=True)
class Trial:
    """One tile on one device.

    Attributes:
        tile: what was tried.
        verdict: how it ended.
        note: why, where it is not timed.
        vgprs: of a lane; 0 where nothing was compiled, as for the next three.
        sgprs: of a wave.
        spills: registers of a lane or wave that went to scratch.
        lds_bytes: of a workgroup.
        workgroups_per_cu: that registers and LDS allow.
        clocks: for dispatch; None for the backward, which has no use for them.
        cycles: of the launch with the card full.
        tflops: useful ones of that launch; simulated where the card is.
        valu_busy: per cent; None on a card, as causes.
        causes: shares of the SIMDs' clocks, above 0.2 %.
        max_error: against float64.
        allowed_error: by the numerics contract.
        clock_mhz: of the card during the launch.
        watts: likewise; None where unknown.
    """

    tile: TileShape
    verdict: Verdict
    note: str = ""
    vgprs: int = 0
    sgprs: int = 0
    spills: int = 0
    lds_bytes: int = 0
    workgroups_per_cu: int = 0
    clocks: Clocks | None = None
    cycles: int | None = None
    tflops: float | None = None
    valu_busy: float | None = None
    causes: dict[str, float] = field(default_factory=dict)
    max_error: float | None = None
    allowed_error: float | None = None
    clock_mhz: float | None = None
    watts: float | None = None

    @property
    def group(self) -> str:
        """What its rate can be compared with: d64, or dq_d64."""
        tile = self.tile
        return (f"{tile.gradient}_" if isinstance(tile, BwdShape) else "") + f"d{tile.head_dim}"

    def to_json(self) -> dict[str, Any]:
        """The trial as JSON knows it."""
        plain = {key: value for key, value in asdict(self).items() if key not in ("tile", "clocks")}
        return {
            "name": self.tile.name,
            "tile": self.tile.model_dump(),
            **plain,
            "verdict": self.verdict.value,
            "clocks": None if self.clocks is None else self.clocks.model_dump(),
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Trial":
        """Reads what to_json wrote."""
        known = {key: value for key, value in raw.items() if key != "name"}
        shape = BwdShape if "gradient" in raw["tile"] else TileShape
        known |= {"tile": shape(**raw["tile"]), "verdict": Verdict(raw["verdict"])}
        known["clocks"] = None if raw["clocks"] is None else Clocks(**raw["clocks"])
        return cls(**known)

    def to_csv(self) -> dict[str, Any]:
        """The trial as one flat row, with the same columns for every trial."""
        flat = self.to_json()
        tile, clocks = flat.pop("tile"), flat.pop("clocks") or dict.fromkeys(Clocks.model_fields)
        causes = " ".join(f"{name}:{share:.1f}" for name, share in flat.pop("causes").items())
        return {"name": flat.pop("name"), **tile, **flat, **clocks, "causes": causes}
