"""What the support matrix tries: one function for each row, which computes and returns what to compare."""

from collections.abc import Callable, Mapping

import torch
from torch.nn.functional import scaled_dot_product_attention

import flashattn_rocm
from flashattn_rocm.interface import flash_attn_func, flash_attn_varlen_func
from flashattn_rocm.verify.case import SEQLEN_K, SEQLEN_Q, Case
from flashattn_rocm.verify.definition import attention_by_definition
from flashattn_rocm.verify.judge import Compared

__all__ = ["FEATURES", "Feature"]

Feature = Callable[[Case], list[Compared]]

_DROPOUT = 0.2


def _no_mask(case: Case) -> list[Compared]:
    return case.forward(*case.qkv())


def _causal(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(), causal=True)


def _rows_without_keys(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(SEQLEN_K, SEQLEN_Q), causal=True)


def _window(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(), window_size=(13, 5))


def _softcap(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(), softcap=1.5)


def _alibi(case: Case) -> list[Compared]:
    q, k, v = case.qkv()
    slopes = torch.tensor([[0.5, 0.1], [0.02, 0.3]], device=case.device)
    return case.forward(q, k, v, causal=True, alibi_slopes=slopes)


def _bias(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(), attn_bias=case.randn(2, 1, SEQLEN_Q, SEQLEN_K))


def _bool_mask(case: Case) -> list[Compared]:
    mask = case.randn(1, 2, SEQLEN_Q, SEQLEN_K) > 0
    mask[..., :3, :] = False
    return case.forward(*case.qkv(), attn_bias=mask)


def _sinks(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(), sinks=case.randn(2))


def _grouped(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(heads=4, heads_kv=1), causal=True)


def _other_head_dim_v(case: Case) -> list[Compared]:
    return case.forward(*case.qkv(head_dim_v=max(case.head_dim // 2, 1)), causal=True)


def _any_strides(case: Case) -> list[Compared]:
    """Rows that begin at odd addresses, in the middle of a larger tensor."""
    q, k, v = (torch.nn.functional.pad(tensor, (1, 2))[..., 1:-2] for tensor in case.qkv())
    return case.forward(q, k, v, causal=True)


def _packed(case: Case) -> list[Compared]:
    """Three sequences laid end to end, the second without queries."""
    lengths_q, lengths_k = [20, 0, 30], [20, 7, 43]
    q, k, v = (tensor[0] for tensor in case.qkv())
    ends_q, ends_k = (
        torch.tensor([0, *lengths]).cumsum(0).to(torch.int32).to(case.device)
        for lengths in (lengths_q, lengths_k)
    )
    out = flash_attn_varlen_func(q, k, v, ends_q, ends_k, max(lengths_q), max(lengths_k), causal=True)
    assert isinstance(out, torch.Tensor)
    compared = []
    for first_q, end_q, first_k, end_k in zip(ends_q[:-1], ends_q[1:], ends_k[:-1], ends_k[1:], strict=True):
        rows, keys = slice(int(first_q), int(end_q)), slice(int(first_k), int(end_k))
        inputs = (q[None, rows], k[None, keys], v[None, keys])
        compared += case.compare(out[None, rows], None, *inputs, causal=True)
    return compared


def _sdpa(case: Case) -> list[Compared]:
    """The function of torch, on these kernels or not at all."""
    q, k, v = case.qkv()
    mask = case.randn(2, 1, 1, SEQLEN_K) > -1
    with flashattn_rocm.sdpa(fallback=False):
        split = [tensor.transpose(1, 2) for tensor in (q, k, v)]
        out = scaled_dot_product_attention(split[0], split[1], split[2], attn_mask=mask)
    return case.compare(out.transpose(1, 2), None, q, k, v, attn_bias=mask)


def _backward(case: Case) -> list[Compared]:
    return case.gradients(case.qkv())


def _backward_causal_grouped(case: Case) -> list[Compared]:
    return case.gradients(case.qkv(heads=4, heads_kv=2), causal=True)


def _backward_window_softcap(case: Case) -> list[Compared]:
    return case.gradients(case.qkv(), window_size=(13, 5), softcap=1.5)


def _backward_dropout(case: Case) -> list[Compared]:
    return case.gradients(case.qkv(heads=4, heads_kv=2), dropout_p=_DROPOUT, causal=True)


def _dropout(case: Case) -> list[Compared]:
    """S_dmask says by its signs what was dropped."""
    q, k, v = case.qkv()
    out, lse, dropped = flash_attn_func(q, k, v, dropout_p=_DROPOUT, return_attn_probs=True)
    if dropped.numel() == 0:
        raise NotImplementedError("S_dmask is empty: what was dropped cannot be told")
    keep = ~torch.signbit(dropped[..., :SEQLEN_Q, :SEQLEN_K])
    rate = 1.0 - keep.float().mean().item()
    if abs(rate - _DROPOUT) > 0.05:
        raise ArithmeticError(f"{rate:.3f} of the probabilities are dropped, not {_DROPOUT}")
    compared = case.compare(out, None, q, k, v, keep=keep, dropout_p=_DROPOUT)
    want, want_lse = attention_by_definition(q, k, v)
    return [*compared, Compared("lse", lse, want_lse, want)]


def _kv_cache(case: Case) -> list[Compared]:
    """A decode step: one new key is appended to each sequence of a cache that holds more than it says."""
    q, k_cache, v_cache = case.qkv(1, SEQLEN_K, heads=4, heads_kv=2)
    _, k, v = case.qkv(1, 1, heads=4, heads_kv=2)
    lengths = torch.tensor([SEQLEN_K - 1, 17], dtype=torch.int32, device=case.device)
    out = flashattn_rocm.flash_attn_with_kvcache(
        q, k_cache, v_cache, k, v, cache_seqlens=lengths, causal=True
    )
    return _compare_cached(case, out, q, k_cache, v_cache, lengths + 1, (k, v))


def _paged_kv_cache(case: Case) -> list[Compared]:
    """Pages of 16 keys in any order."""
    page, pages_each = 16, 5
    q, k, v = case.qkv(1, page * pages_each, heads=4, heads_kv=2)
    order = torch.randperm(2 * pages_each, generator=torch.Generator().manual_seed(1))
    table = order.reshape(2, pages_each).to(torch.int32).to(case.device)
    paged = [torch.empty_like(t).view(2 * pages_each, page, *t.shape[2:]) for t in (k, v)]
    for tensor, pages in zip((k, v), paged, strict=True):
        pages[order.to(case.device)] = tensor.view(2 * pages_each, page, *tensor.shape[2:])
    lengths = torch.tensor([page * pages_each, 23], dtype=torch.int32, device=case.device)
    k_cache, v_cache = paged
    out = flashattn_rocm.flash_attn_with_kvcache(
        q, k_cache, v_cache, cache_seqlens=lengths, block_table=table
    )
    return _compare_cached(case, out, q, k, v, lengths, None)


def _compare_cached(
    case: Case,
    out: torch.Tensor,
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    lengths: torch.Tensor,
    appended: tuple[torch.Tensor, torch.Tensor] | None,
) -> list[Compared]:
    compared = []
    for row, length in enumerate(lengths.tolist()):
        k, v = k_cache[row : row + 1, :length].clone(), v_cache[row : row + 1, :length].clone()
        if appended is not None:
            k[:, -1], v[:, -1] = appended[0][row, 0], appended[1][row, 0]
        compared += case.compare(out[row : row + 1], None, q[row : row + 1], k, v)
    return compared


FEATURES: Mapping[str, Feature] = {
    "no mask": _no_mask,
    "causal": _causal,
    "queries without keys": _rows_without_keys,
    "sliding window": _window,
    "softcap": _softcap,
    "ALiBi": _alibi,
    "additive bias": _bias,
    "boolean mask": _bool_mask,
    "sinks": _sinks,
    "grouped queries": _grouped,
    "V of half the head dim": _other_head_dim_v,
    "unaligned strides": _any_strides,
    "packed sequences": _packed,
    "scaled_dot_product_attention": _sdpa,
    "backward": _backward,
    "backward, causal, grouped": _backward_causal_grouped,
    "backward, window, softcap": _backward_window_softcap,
    "dropout": _dropout,
    "backward, dropout": _backward_dropout,
    "KV cache": _kv_cache,
    "paged KV cache": _paged_kv_cache,
}
