"""A long-lived process: nothing of many calls stays behind."""

import gc

import pytest
import torch

from flashattn_rocm import flash_attn_func
from tests.kit.heap import heap_bytes

CALLS = 2000


def call(n: int) -> None:
    """One forward on the simulated card; every 10th is refused."""
    q = torch.ones(1, 16, 2, 32, dtype=torch.float16)
    if n % 10 == 0:
        with pytest.raises(ValueError, match="head"):
            flash_attn_func(q, q[:, :, :1].expand(1, 16, 3, 32), q)
    flash_attn_func(q, q, q, causal=n % 2 == 0)


def test_the_heap_does_not_grow_over_many_calls() -> None:
    for n in range(CALLS // 4):
        call(n)
    gc.collect()
    before = heap_bytes()
    for n in range(CALLS):
        call(n)
    gc.collect()
    assert heap_bytes() - before < 16 * CALLS
