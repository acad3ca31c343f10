"""The table of published figures (published.toml), typed."""

import sys
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

AIM = (0.85, 1.15)  # of simulated / published
TABLE = Path(__file__).with_name("published.toml")


@dataclass(frozen=True)
class Board:
    """The card that a figure was published for."""

    compute_units: int
    clock_mhz: float


@dataclass(frozen=True)
class Figure:
    """One published figure and the microbenchmark that simulates it.

    Attributes:
        work: what a thread does in an iteration, in the unit's basic quantity; instructions for
            "clk/instruction".
        streams: the footprint is the point: steady state is found by more iterations, not more groups.
        fitted: the figure set a parameter, so that its ratio proves nothing.
        fast: also checked by the test suite.
        band: of simulated / published; wider than AIM only for what the note calls unexplained.
        note: what the figure set, what was assumed, or why it is off.
    """

    name: str
    kernel: str
    published: float
    unit: str
    source: str
    board: Board | None
    work: int
    iterations: int
    streams: bool
    fitted: bool
    fast: bool
    band: tuple[float, float]
    note: str


def load_figures() -> list[Figure]:
    """Every figure, in the table's order."""
    table = tomllib.loads(TABLE.read_text())
    boards = {name: Board(**values) for name, values in table["board"].items()}
    defaults = {"work": 0, "streams": False, "fitted": False, "fast": False, "band": AIM, "note": ""}
    figures = []
    for line in table["line"]:
        values = {**defaults, **line, "board": boards[line["board"]] if "board" in line else None}
        figures.append(Figure(**{**values, "band": (values["band"][0], values["band"][1])}))
    return figures
