"""transformers' Trainer at the head dims that fine-tuning meets, and the memory of its attention."""

import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

from transformers import LlamaConfig

from flashattn_rocm import explain_dispatch, flash_attn_func
from flashattn_rocm.integrations.transformers import register
from tests.kit.allocations import peak_allocation
from tests.kit.cases import randn

EXAMPLE = Path(__file__).parents[2] / "examples/transformers_trainer.py"
BF16 = torch.bfloat16


class Operands(TorchDispatchMode):
    """Counts our ops by name, dtype and head dim of q."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[str, torch.dtype, int]] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None) -> Any:
        namespace, _, name = func._schema.name.partition("::")
        if namespace == "flashattn_rocm":
            q = args[1] if name == "bwd" else args[0]
            self.counts[name, q.dtype, q.shape[-1]] += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("head_dim", [128, 256, 512])
def test_trainer_on_the_kernels_is_trainer_on_eager(head_dim):
    """Two steps: the second loss is that of weights which the first gradients changed."""
    example = runpy.run_path(str(EXAMPLE))
    config = LlamaConfig(**{**example["CONFIG"].to_dict(), "head_dim": head_dim, "num_hidden_layers": 1})
    register("gfx906")
    with Operands() as operands:
        got = example["train"]("gfx906", config, steps=2)
    assert operands.counts == {("fwd", BF16, head_dim): 2, ("bwd", BF16, head_dim): 2}
    want = example["train"]("eager", config, steps=2)
    assert want[0] - want[1] > 0.1
    assert got == pytest.approx(want, abs=2e-3)  # bf16 has steps of 2^-8; the loss is a mean over 190 tokens


# Query and key heads of Llama-3-8B, of Gemma-2-9B, and of a layer of 512 as Gemma 4 has some.
FULL_SIZE = {128: (32, 8, BF16), 256: (16, 8, BF16), 512: (8, 1, BF16)}
TOKENS = 4096


@pytest.mark.long
@pytest.mark.parametrize("head_dim", FULL_SIZE)
def test_4096_tokens_take_the_results_and_the_gradients(head_dim):
    """Of a window: it needs the memory of whole attention, and a hundredth of its time on the simulator."""
    heads, heads_kv, dtype = FULL_SIZE[head_dim]
    q = randn(1, TOKENS, heads, head_dim, seed=1, dtype=dtype)
    kv = [randn(1, TOKENS, heads_kv, head_dim, seed=seed, dtype=dtype) for seed in (2, 3)]
    leaves = [x.requires_grad_() for x in (q, *kv)]
    dout = torch.ones_like(q)
    whole = explain_dispatch(
        head_dim=head_dim, seqlen_q=TOKENS, heads=heads, heads_kv=heads_kv, causal=True, dtype=dtype
    )
    assert "split" not in whole[0].kernel  # which would hold partial results

    def step() -> None:
        flash_attn_func(*leaves, causal=True, window_size=(31, 0)).backward(dout)

    peak = peak_allocation(step)
    bytes_q, bytes_k = (2 * TOKENS * n * head_dim for n in (heads, heads_kv))
    rows = TOKENS * heads
    results, gradients = bytes_q + 4 * rows, bytes_q + 2 * bytes_k  # out and log-sum-exp; dq, dk and dv
    statistics = 12 * rows  # delta and shift, and autograd's zeros for the gradient of the log-sum-exp
    assert results + gradients <= peak < results + gradients + statistics + 4096
