#!/usr/bin/env python3
"""One LoRA step of SmolLM2-135M: gradients with attention on these kernels and on torch's math.

Adapters on the q, k, v and o projections of all 30 layers, in float16 as a fine-tuning run has them; the
same weights in float32 with torch's math are the reference. A row of the table is one kind of adapter matrix
over all layers: the distance of its gradients from the reference, over the length of the reference. Allowed
is twice that of torch's math in the same dtype, and the table ends with all adapters together.

Exit code: 0 if every row is within that and all attention was computed by the kernels, 1 if not, 2 if a
package is missing or an option is bad.
"""

import argparse
import copy
import json
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

# Read when torch and transformers are imported: nothing is fetched, and no bars cut through the table.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from flashattn_rocm.accuracy import MATH_ERRORS_ALLOWED
from traininglib.attention import AttentionCalls, on_kernels, on_math
from traininglib.lora import add_lora
from traininglib.run import LOSS_SCALE

if TYPE_CHECKING:
    from transformers import PreTrainedModel

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj")
_DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16}

Gradients = dict[str, Tensor]


@dataclass(frozen=True)
class Row:
    """Of all gradients of one kind.

    Attributes:
        kind: such as "q_proj.a", or "all".
        tensors: how many.
        error: with the kernels, relative to the reference's length.
        math_error: with torch's math in the same dtype, likewise.
        cosine: of the kernels' gradients and the reference.
    """

    kind: str
    tensors: int
    error: float
    math_error: float
    cosine: float

    @property
    def passed(self) -> bool:
        """At most twice the error of torch's math."""
        return self.error <= MATH_ERRORS_ALLOWED * self.math_error


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    options = _parse(arguments)
    try:
        from flashattn_rocm.verify.smollm import PROMPT, load_language_model, load_tokenizer

        tokenizer, half = load_tokenizer(), load_language_model()
    except ImportError as error:
        print(f"lora_step: {error}", file=sys.stderr)
        return 2
    ids = tokenizer(PROMPT, return_tensors="pt")["input_ids"]
    rows, loss, calls = compare(half, ids.repeat(options.batch, 1), _DTYPES[options.dtype], options.device)
    layers = half.config.num_hidden_layers
    only_kernels = calls == {"fwd": layers, "bwd": layers}
    ok = only_kernels and all(row.passed for row in rows)
    if options.json:
        content = {"ok": ok, "loss": loss, "calls": calls, "rows": [asdict(row) for row in rows]}
        print(json.dumps(content, indent=1))
        return 0 if ok else 1
    console = Console()
    (console if console.is_terminal else Console(width=120)).print(_table(rows, options.dtype, ids.shape[1]))
    told = ", ".join(f"{count} {name}" for name, count in sorted(calls.items()))
    console.print(f"attention calls: {told}; {'all' if only_kernels else 'NOT all'} on the kernels")
    console.print(f"gradients {'agree' if ok else 'DO NOT AGREE'} with torch's math; loss {loss:.4f}")
    return 0 if ok else 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="lora_step.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", choices=_DTYPES, default="float16")
    parser.add_argument("--batch", type=int, default=1, help="copies of the text (default: %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="cpu: the simulated card")
    parser.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    options = parser.parse_args(arguments)
    if options.batch < 1:
        parser.error(f"argument --batch: must be at least 1, got {options.batch}")
    return options


def compare(
    half: "PreTrainedModel", ids: Tensor, dtype: torch.dtype, device: str
) -> tuple[list[Row], float, dict[str, int]]:
    """The rows, the loss with the kernels, and the calls of attention ops.

    Args:
        half: the model, without adapters; it is changed.
        ids: (batch, tokens), of which each predicts the next.
        dtype: of the model and its attention, but for the reference.
        device: "cpu" (the simulated card) or "cuda".
    """
    model = half.to(dtype)
    model.set_attn_implementation("sdpa")
    add_lora(model, PROJECTIONS)
    model.to(device)
    exact = copy.deepcopy(model).float()  # of the same rounded weights
    ids = ids.to(device)
    want, _ = _gradients(exact, on_math(), ids)
    by_math, _ = _gradients(model, on_math(), ids)
    with AttentionCalls() as calls:
        got, loss = _gradients(model, on_kernels(), ids)
    return _rows(got, by_math, want), loss, dict(calls.counts)


def _gradients(
    model: "PreTrainedModel", where: AbstractContextManager[None], ids: Tensor
) -> tuple[Gradients, float]:
    """Of every adapter, in float64 on the CPU, and the loss."""
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    with where:
        loss = model(ids, labels=ids, use_cache=False).loss.float()
        gradients = torch.autograd.grad(loss * LOSS_SCALE, list(parameters.values()))
    return {
        name: gradient.cpu().double() / LOSS_SCALE
        for name, gradient in zip(parameters, gradients, strict=True)
    }, loss.item()


def _rows(got: Gradients, by_math: Gradients, want: Gradients) -> list[Row]:
    kinds: dict[str, list[str]] = {}
    for name in want:
        kinds.setdefault(".".join(name.split(".")[-2:]), []).append(name)
    kinds["all"] = list(want)

    def joined(gradients: Gradients, names: list[str]) -> Tensor:
        return torch.cat([gradients[name].flatten() for name in names])

    rows = []
    for kind, names in kinds.items():
        ours, math, exact = (joined(each, names) for each in (got, by_math, want))
        length = exact.norm()
        cosine = torch.nn.functional.cosine_similarity(ours, exact, dim=0).item()
        error, math_error = (((each - exact).norm() / length).item() for each in (ours, math))
        rows.append(Row(kind, len(names), error, math_error, cosine))
    return rows


def _table(rows: Sequence[Row], dtype: str, tokens: int) -> Table:
    table = Table(
        title=f"Gradients of SmolLM2-135M's LoRA adapters, {dtype}, {tokens} tokens, against float32",
        title_justify="left",
    )
    for heading in ("adapter", "tensors", "error", "torch's math", "ratio", "allowed", "cosine", ""):
        table.add_column(heading, justify="left" if heading in ("adapter", "") else "right")
    for row in rows:
        table.add_row(
            row.kind,
            str(row.tensors),
            f"{row.error:.2e}",
            f"{row.math_error:.2e}",
            f"{row.error / row.math_error:.2f}",
            f"{MATH_ERRORS_ALLOWED * row.math_error:.2e}",
            f"{row.cosine:.7f}",
            "pass" if row.passed else "FAIL",
            end_section=row is rows[-2],
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
