"""The user's configuration: clocks that scripts/tune_mi50.py measured, in place of the shipped ones.

A file has rows [[fwd]] as configs/<arch>.toml has. It is read when the first forward for its arch is
dispatched, and never stops one: what cannot be used is named in a warning.
"""

import os
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import flashattn_rocm._C as _C

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

VARIABLE = "FLASHATTN_ROCM_CONFIG"  # "off", or the path of a file

FwdTuning = tuple[str, int, int, int]  # kernel; fixed, step, step_full

_TILE_DEFAULTS = {
    "head_dim_v": 0,
    "kv": "apart",
    "operands": "streamed",
    "rescale": "lazy",
    "access": "chunks",
    "scores": "plain",
}
_CLOCKS = ("fixed", "step", "step_full")
_MOST_CLOCKS = 2**31 - 1


def user_config_file(arch: str) -> Path:
    """Where the rows for an arch are: below XDG_CONFIG_HOME, by default ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "flashattn_rocm" / f"{arch}.toml"


def offer_tuning() -> None:
    """Lets the dispatcher ask for the rows of an arch when it first needs them; reads nothing yet."""
    _C.set_fwd_tuning_source(read_tuning)


def read_tuning(arch: str) -> list[FwdTuning]:
    """The measured clocks of kernels of this build, in the order of the file; empty if there are none.

    Warns of a file that cannot be used, which is then ignored, and of rows for other kernels.
    """
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() == "off":
        return []
    file = Path(asked) if asked else user_config_file(arch)
    if not asked and not file.is_file():
        return []
    try:
        rows = _rows(file)
        keys = [_tile_key(row) for row in rows]
        clocks = [_clocks(row) for row in rows]
    except (OSError, ValueError) as error:
        warnings.warn(
            f"{file} is ignored: {error}. Repair or remove it, write it anew with scripts/tune_mi50.py, or "
            f"set {VARIABLE}=off.",
            stacklevel=2,
        )
        return []
    built: dict[object, list[str]] = {}
    for kernel in _C.fwd_kernels():
        built.setdefault(_tile_key(kernel), []).append(kernel["name"])
    missing = sum(key not in built for key in keys)
    if missing:
        warnings.warn(
            f"{missing} of {len(rows)} rows in {file} are for kernels that this build does not have, and are "
            "ignored: to build them, put these rows into configs/ of the repository and install it again.",
            stacklevel=2,
        )
    pairs = zip(keys, clocks, strict=True)
    return [(name, *each) for key, each in pairs for name in built.get(key, [])]


def _rows(file: Path) -> list[dict[str, Any]]:
    rows = tomllib.loads(file.read_text()).get("fwd")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError("it has no rows [[fwd]]")
    return rows


def _tile_key(row: Mapping[str, Any]) -> tuple[object, ...]:
    """What makes two rows the same tile."""
    full = {**_TILE_DEFAULTS, **row}
    names = ("head_dim", "block_m", "block_n", "waves", "p_keys", *tuple(_TILE_DEFAULTS)[1:])
    absent = [name for name in names if name not in full]
    if absent:
        raise ValueError(f"a row has no {absent[0]}")
    numbers = "f32" if row.get("element") == "f32" else row.get("numbers", "16bit")
    return (*(full[name] for name in names), full["head_dim_v"] or full["head_dim"], numbers)


def _clocks(row: Mapping[str, Any]) -> tuple[int, int, int]:
    clocks = row.get("clocks")
    values = [clocks.get(name) if isinstance(clocks, dict) else None for name in _CLOCKS]
    if not all(isinstance(v, int) and not isinstance(v, bool) and 0 <= v <= _MOST_CLOCKS for v in values):
        raise ValueError(f"clocks={clocks!r} must have {', '.join(_CLOCKS)} as integers of at least 0")
    fixed, step, step_full = (int(value) for value in values if value is not None)
    return fixed, step, step_full
