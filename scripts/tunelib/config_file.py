"""Writes rows into a configuration: configs/<arch>.toml, or the user's own file."""

import sys
from collections.abc import Sequence
from pathlib import Path

from buildlib.tile_config import BwdTile, FwdTile, TileShape

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_HEADERS = {FwdTile: "[[fwd]]\n", BwdTile: "[[bwd]]\n"}
_KEYS = ("gradient", *TileShape.model_fields, "for_elements", "workgroups_per_cu")

Row = FwdTile | BwdTile
_USER_HEAD = """\
# Clocks that scripts/tune_mi50.py measured on this machine. flashattn_rocm takes them in place of the shipped
# ones, for kernels that are in the build; FLASHATTN_ROCM_CONFIG=off ignores this file.

"""


def write_repo_config(file: Path, rows: Sequence[Row], old: Sequence[Row]) -> list[Row]:
    """Replaces the rows of the kinds that `rows` has; all else in the file stays as it is.

    A tile that stays keeps its reason, which a person may have written.

    Returns:
        All rows of the file.
    """
    text, header = file.read_text(), _HEADERS[type(old[0])]
    begin = text.index(header)
    last = text.rindex(header)
    end = text.index("\n\n", last) + 2  # an empty line ends the last row
    reasons = {row.name: row.why for row in old}
    kept = [row.model_copy(update={"why": reasons.get(row.name, row.why)}) for row in rows]
    merged = merge_rows(kept, old)
    file.write_text(text[:begin] + render_rows(merged) + text[end:])
    return merged


def write_user_config(file: Path, rows: Sequence[FwdTile], old: Sequence[FwdTile]) -> None:
    """Writes a user's file anew; rows of other kinds in it stay."""
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(_USER_HEAD + render_rows(merge_rows(rows, old)))
    partial.replace(file)


def read_user_rows(file: Path) -> list[FwdTile]:
    """The rows of a user's file; none if it is missing or of no use, since it is about to be replaced."""
    try:
        return [FwdTile(**row) for row in tomllib.loads(file.read_text()).get("fwd", [])]
    except (OSError, ValueError, TypeError):
        return []


def merge_rows(new: Sequence[Row], old: Sequence[Row]) -> list[Row]:
    """The new rows in the place of the old ones of their kind; kinds that had none come last.

    A tile that also has a kernel that splits keeps it.
    """
    splits = [row.keys for row in old if isinstance(row, FwdTile) and row.split]
    new = [row.model_copy(update={"split": True}) if row.keys in splits else row for row in new]
    kinds = dict.fromkeys(map(_kind, [*old, *new]))
    tuned = set(map(_kind, new))
    return [row for kind in kinds for row in (new if kind in tuned else old) if _kind(row) == kind]


def _kind(row: TileShape) -> tuple[int, tuple[str, ...]]:
    """What a choice of tiles is made for: each kind serves other calls."""
    return row.head_dim, row.kind


def render_rows(rows: Sequence[Row]) -> str:
    """Rows as TOML, defaults left out, an empty line after each."""
    return "".join(_render(row) + "\n" for row in rows)


def _render(row: Row) -> str:
    fields = type(row).model_fields
    values = {key: getattr(row, key) for key in _KEYS if key in fields}
    lines = [f"{key} = {_toml(value)}\n" for key, value in values.items() if value != fields[key].default]
    if isinstance(row, FwdTile):
        clocks = ", ".join(f"{key} = {value}" for key, value in row.clocks.model_dump().items())
        lines += [f"clocks = {{ {clocks} }}\n", *(["split = true\n"] if row.split else [])]
    return "".join([_HEADERS[type(row)], *lines, f"why = {_toml(row.why)}\n"])


def _toml(value: int | str | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, int):
        return str(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
