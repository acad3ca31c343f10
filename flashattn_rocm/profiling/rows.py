"""What a report is made of: figures in tables."""

from dataclasses import dataclass

Value = float | int | str


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        name: of the figure.
        value: the figure.
        unit: of the value; "" for a count or a text.
        note: a share, a limit, or how the figure came about.
    """

    name: str
    value: Value
    unit: str = ""
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A table of a report."""

    key: str
    title: str
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> Row:
        return next(row for row in self.rows if row.name == name)


def share(part: float, whole: float) -> str:
    """A part in per cent; "" of nothing."""
    return f"{part / whole:.1%}" if whole else ""
