"""The support matrix: every feature at every head dim and dtype, each cell by running it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from flashattn_rocm.manifest import read_manifest
from flashattn_rocm.verify.case import Case
from flashattn_rocm.verify.features import FEATURES
from flashattn_rocm.verify.judge import violation

__all__ = ["DTYPES", "HEAD_DIMS", "Cell", "matrix_page", "run_matrix", "write_matrix"]

HEAD_DIMS = (8, 16, 32, 40, 41, 64, 72, 80, 96, 112, 128, 160, 192, 256, 512)
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_REFUSALS = (NotImplementedError, TypeError, ValueError)
_ARCH = "gfx906"


@dataclass(frozen=True)
class Cell:
    """What came of one feature at one head dim and dtype.

    Attributes:
        feature: a key of FEATURES.
        head_dim: of q and k.
        dtype: such as "float16".
        state: "yes": it ran and is right; "no": it is refused; "wrong": it ran and is not.
        reason: of a refusal, or what is wrong; empty for "yes".
    """

    feature: str
    head_dim: int
    dtype: str
    state: Literal["yes", "no", "wrong"]
    reason: str = ""


def run_matrix(
    device: str,
    features: Sequence[str] = tuple(FEATURES),
    head_dims: Sequence[int] = HEAD_DIMS,
    dtypes: Sequence[torch.dtype] = DTYPES,
    done: Callable[[Cell], None] = lambda cell: None,
) -> list[Cell]:
    """Runs every combination.

    Args:
        device: "cpu" for the simulated card, "cuda" for a card.
        features: keys of FEATURES.
        head_dims: of q and k.
        dtypes: of the inputs.
        done: called after each cell.
    """
    cells = []
    for cell in _cells(device, features, head_dims, dtypes):
        done(cell)
        cells.append(cell)
    return cells


def _cells(
    device: str, features: Sequence[str], head_dims: Sequence[int], dtypes: Sequence[torch.dtype]
) -> Iterator[Cell]:
    for dtype in dtypes:
        for feature in features:
            for head_dim in head_dims:
                yield _run(feature, Case(dtype, head_dim, device))


def _run(feature: str, case: Case) -> Cell:
    where = (feature, case.head_dim, str(case.dtype).removeprefix("torch."))
    try:
        compared = FEATURES[feature](case)
    except _REFUSALS as error:
        return Cell(*where, "no", str(error).splitlines()[0])
    except (ArithmeticError, RuntimeError) as error:
        return Cell(*where, "wrong", str(error).splitlines()[0])
    wrong = next(filter(None, map(violation, compared)), "" if compared else "nothing was compared")
    return Cell(*where, "wrong", wrong) if wrong else Cell(*where, "yes")


def write_matrix(cells: Sequence[Cell], device: str, file: Path) -> None:
    """Writes the page."""
    file.write_text(matrix_page(cells, device))


def matrix_page(cells: Sequence[Cell], device: str) -> str:
    """The matrix as Markdown: a table a dtype, the reasons of its holes, and the kernels of the build."""
    where = "the simulated MI50" if device == "cpu" else "a card"
    lines = [
        "# Support matrix",
        "",
        f"Written by `flashattn-rocm verify --matrix` on {where}; no line of it is written by hand. A cell "
        "says",
        "yes only if that combination ran and met [numerics.md](numerics.md) against float64; a number "
        "points to the",
        "error that a call gets instead. Columns are head dims.",
        "",
    ]
    reasons: dict[str, int] = {}
    for dtype in dict.fromkeys(cell.dtype for cell in cells):
        lines += [f"## {dtype}", "", *_table([cell for cell in cells if cell.dtype == dtype], reasons), ""]
    if reasons:
        lines += ["## What is refused, and how", ""]
        lines += [f"{number}. {reason}" for reason, number in reasons.items()]
        lines += [""]
    return "\n".join([*lines, *_kernels()]) + "\n"


def _table(cells: Sequence[Cell], reasons: dict[str, int]) -> list[str]:
    head_dims = list(dict.fromkeys(cell.head_dim for cell in cells))
    lines = ["| |" + "".join(f" {head_dim} |" for head_dim in head_dims), "|---|" + "---|" * len(head_dims)]
    for feature in dict.fromkeys(cell.feature for cell in cells):
        row = {cell.head_dim: cell for cell in cells if cell.feature == feature}
        lines.append(f"| {feature} |" + "".join(f" {_text(row[d], reasons)} |" for d in head_dims))
    return lines


def _text(cell: Cell, reasons: dict[str, int]) -> str:
    if cell.state == "yes":
        return "yes"
    # Head dims and shapes in an error differ from cell to cell; the feature says enough.
    number = reasons.setdefault(_general(cell), len(reasons) + 1)
    return f"{'no' if cell.state == 'no' else '**wrong**'} ({number})"


def _general(cell: Cell) -> str:
    text = cell.reason.replace("|", "\\|")
    return text if cell.state == "no" else f"wrong: {cell.feature} at {cell.head_dim}: {text}"


def _kernels() -> list[str]:
    families = (read_manifest("kernels"), read_manifest("decode"))
    names = [kernel["name"] for family in families for kernel in family["archs"].get(_ARCH, [])]
    return ["## Kernels", "", f"The {len(names)} kernels for {_ARCH} of the build that was tried:", ""] + [
        f"* `{name}`" for name in names
    ]
