"""Where the tests run: the simulated card (cpu tensors), or a card when FLASHATTN_TEST_DEVICE=cuda."""

import os

import torch

from flashattn_rocm import flash_attn_func

DEVICE = torch.device(os.environ.get("FLASHATTN_TEST_DEVICE", "cpu"))


def expect_usable() -> None:
    """One call whose result is known exactly: a query of zeros takes the mean of the values."""
    q = torch.zeros(1, 1, 1, 32, dtype=torch.float16, device=DEVICE)
    v = torch.arange(4, dtype=torch.float16, device=DEVICE).view(1, 4, 1, 1).expand(1, 4, 1, 32)
    assert torch.equal(flash_attn_func(q, v, v.contiguous()), torch.full_like(q, 1.5))
