"""Which probabilities dropout keeps, from the layout that csrc/attention/dropout.h documents."""

import numpy as np
import torch
from torch import Tensor

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF

# What changes or hides scores, beside dropout.
OPTIONS = (
    {"causal": True},
    {"window_left": 20, "window_right": 5},
    {"softcap": 3.0, "top_left": True, "causal": True},
    {"softmax_scale": -0.3},
)


def philox4x32_10(counter: tuple[np.ndarray | int, ...], key: tuple[int, int]) -> list[np.ndarray]:
    """Philox-4x32-10 of Salmon et al. (2011): four words for each counter of four words."""
    a, b, c, d = (np.asarray(word, dtype=np.uint64) for word in np.broadcast_arrays(*counter))
    for turn in range(10):
        first, second = np.uint64(_MULTIPLIERS[0]) * a, np.uint64(_MULTIPLIERS[1]) * c
        k0, k1 = (np.uint64(key[i] + turn * _KEY_STEPS[i] & _WORD) for i in range(2))
        half, low = np.uint64(32), np.uint64(_WORD)
        a, b, c, d = second >> half ^ b ^ k0, second & low, first >> half ^ d ^ k1, first & low
    return [a, b, c, d]


def kept(rng_state: Tensor, dropout_p: float, batch: int, heads: int, seqlen_q: int, seqlen_k: int) -> Tensor:
    """(batch, heads, seqlen_q, seqlen_k) bool: False where the probability is dropped."""
    seed, offset = (int(word) & 0xFFFFFFFFFFFFFFFF for word in rng_state)
    key, row = np.arange(seqlen_k), np.arange(seqlen_q)[:, None]
    item = np.arange(batch * heads)[:, None, None]
    words = philox4x32_10(
        (key // 32 * 16 + key % 16, row // 16 * 4 + row % 4, item, offset & _WORD),
        (seed & _WORD, seed >> 32 ^ offset >> 32),
    )
    word = np.choose(row // 4 % 4, words)
    bits = word >> (key // 16 % 2 * 16).astype(np.uint64) & np.uint64(0xFFFF)
    keep = torch.from_numpy(bits >= round(dropout_p * 65536))
    return keep.view(batch, heads, seqlen_q, seqlen_k).to(rng_state.device)
