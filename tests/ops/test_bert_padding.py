"""Between padded batches and sequences laid end to end."""

import torch

from flashattn_rocm import bert_padding, flash_attn_func, flash_attn_varlen_func
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

MASK = torch.tensor([[0, 1, 1, 1], [0, 0, 0, 0], [1, 0, 1, 0]], device=DEVICE)
UNUSED = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]], device=DEVICE)


def test_unpad_and_pad():
    x = torch.arange(1.0, 25.0, device=DEVICE).view(3, 4, 2)
    for mask in (MASK, MASK.bool()):
        packed, indices, cu_seqlens, max_seqlen, used = bert_padding.unpad_input(x, mask)
        assert indices.tolist() == [1, 2, 3, 8, 10]
        assert torch.equal(packed, x.flatten(0, 1)[indices])
        assert (cu_seqlens.dtype, cu_seqlens.tolist()) == (torch.int32, [0, 3, 3, 5])
        assert (max_seqlen, used.dtype, used.tolist()) == (3, torch.int32, [3, 0, 2])
        for numbers in (indices, indices.int()):
            padded = bert_padding.pad_input(packed, numbers, 3, 4)
            assert torch.equal(padded, x * MASK[..., None])


def test_unused_tokens_are_laid_out_but_not_counted():
    x = randn(3, 4, 2, seed=1)
    packed, indices, cu_seqlens, max_seqlen, used = bert_padding.unpad_input(x, MASK, UNUSED)
    assert indices.tolist() == [0, 1, 2, 3, 8, 9, 10]
    assert packed.shape == (7, 2)
    assert (cu_seqlens.tolist(), max_seqlen, used.tolist()) == ([0, 4, 4, 7], 4, [3, 0, 2])


def test_rows_of_several_sequences():
    lengths = torch.tensor([[2, 3, 0, 0, 0, 0], [3, 2, 1, 0, 0, 0], [6, 0, 0, 0, 0, 0]], device=DEVICE)
    x = randn(3, 6, 2, seed=2)
    packed, indices, cu_seqlens, max_seqlen = bert_padding.unpad_input_for_concatenated_sequences(x, lengths)
    assert indices.tolist() == [i for i in range(18) if i != 5]
    assert torch.equal(packed, x.flatten(0, 1)[indices])
    assert (cu_seqlens.dtype, cu_seqlens.tolist()) == (torch.int32, [0, 2, 5, 8, 10, 11, 17])
    assert max_seqlen == 6


def test_gradients():
    x = torch.randn(6, 2, dtype=torch.float64, requires_grad=True)
    rows = torch.tensor([4, 0, 3])
    check = torch.autograd.gradcheck
    assert check(lambda t: bert_padding.index_first_axis(t, rows), (x,))
    assert check(lambda t: bert_padding.index_put_first_axis(t, rows, 6), (x[:3].detach().requires_grad_(),))
    assert check(lambda t: bert_padding.index_first_axis_residual(t, rows), (x,))


def test_attention_of_a_padded_batch():
    q, k, v = make_qkv(batch=3, seqlen_q=4, heads_q=2, head_dim=32)
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], device=DEVICE)
    packed, indices, cu_seqlens, longest, _ = bert_padding.unpad_input(torch.stack([q, k, v], 2), mask)
    out = flash_attn_varlen_func(*packed.unbind(1), cu_seqlens, cu_seqlens, longest, longest, causal=True)
    padded = bert_padding.pad_input(out, indices, 3, 4)
    # Padding on the right is invisible to a causal query that is none.
    want = flash_attn_func(q, k, v, causal=True) * mask[..., None, None]
    assert (padded - want).abs().max() < 2e-3
