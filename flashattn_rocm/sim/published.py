"""The table of published figures (published.toml), typed."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

AIM = (0.85, 1.15)  # of simulated / published
# How the note of a figure begins whose band is another one.
UNEXPLAINED, OWN_BAND = "unexplained: ", "own band"
TABLE = Path(__file__).with_name("published.toml")


@dataclass(frozen=True)
class Board:
    """The card that a figure was published for."""

    compute_units: int
    clock_mhz: float


@dataclass(frozen=True)
class Figure:
    """One published figure and the kernel that simulates it.

    Attributes:
        baseline: the kernel to compare with; of unit "x" only.
        work: what a thread does in an iteration, in the unit's basic quantity; instructions for
            "clk/instruction", the publication's VALU wave instructions for "ms".
        steady: what is varied to find the steady state, see published.toml.
        fitted: the figure set a parameter, so that its ratio proves nothing.
        fast: also checked by the test suite.
        band: of simulated / published; other than AIM only for what the note calls unexplained, and for
            a kernel that had to be re-created.
        note: what the figure set, what was assumed, or why it is off.
    """

    name: str
    kernel: str
    published: float
    unit: str
    source: str
    board: Board | None
    baseline: str
    work: int
    iterations: int
    steady: Literal["fills", "streams", "loop"]
    fitted: bool
    fast: bool
    band: tuple[float, float]
    note: str


def load_figures() -> list[Figure]:
    """Every figure, in the table's order."""
    table = tomllib.loads(TABLE.read_text())
    boards = {name: Board(**values) for name, values in table["board"].items()}
    defaults = {
        **{"baseline": "", "work": 0, "steady": "fills", "fitted": False, "fast": False},
        **{"band": AIM, "note": ""},
    }
    figures = []
    for line in table["line"]:
        values = {**defaults, **line, "board": boards[line["board"]] if "board" in line else None}
        figures.append(Figure(**{**values, "band": (values["band"][0], values["band"][1])}))
    return figures
