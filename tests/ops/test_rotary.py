"""Rotary embedding against complex multiplication in float64."""

import pytest
import torch

from flashattn_rocm.rotary import apply_rotary, apply_rotary_emb, apply_rotary_emb_kv_, apply_rotary_emb_qkv_
from tests.kit.cases import randn
from tests.kit.device import DEVICE

POSITIONS, PAIRS = 40, 8
ANGLES = torch.rand(POSITIONS, PAIRS, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 6
COS, SIN = ANGLES.cos().half().to(DEVICE), ANGLES.sin().half().to(DEVICE)


def rotated(row: torch.Tensor, position: int, interleaved: bool) -> torch.Tensor:
    """One row (num_heads, head_dim) in float64."""
    row, turn = row.double().cpu(), torch.complex(COS[position].double().cpu(), SIN[position].double().cpu())
    channels = row[:, : 2 * PAIRS]
    pair = (channels[:, ::2], channels[:, 1::2]) if interleaved else channels.chunk(2, 1)
    z = torch.complex(*pair) * turn
    out = torch.stack([z.real, z.imag], -1 if interleaved else 1).flatten(1)
    return torch.cat([out, row[:, 2 * PAIRS :]], 1)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("offsets", [0, 5, [3, 0]])
def test_dense(interleaved, offsets):
    x = randn(2, 7, 3, 24, seed=1)
    first = torch.tensor(offsets, device=DEVICE) if isinstance(offsets, list) else offsets
    out = apply_rotary_emb(x, COS, SIN, interleaved, seqlen_offsets=first)
    assert out.dtype == x.dtype
    for b in range(2):
        for t in range(7):
            position = t + (offsets[b] if isinstance(offsets, list) else offsets)
            assert (out[b, t].cpu() - rotated(x[b, t], position, interleaved)).abs().max() < 4e-3


def test_packed():
    x = randn(10, 2, 16, seed=2)
    cu_seqlens = torch.tensor([0, 3, 3, 8], dtype=torch.int32, device=DEVICE)
    offsets = torch.tensor([4, 9, 0], device=DEVICE)
    out = apply_rotary(x, COS, SIN, offsets, cu_seqlens, 5)
    for row, position in enumerate([4, 5, 6, 0, 1, 2, 3, 4]):
        assert (out[row].cpu() - rotated(x[row], position, False)).abs().max() < 4e-3
    assert torch.equal(out[8:], x[8:])


def test_conjugate_turns_back():
    x = randn(1, 5, 1, 16, seed=3).float()
    there = apply_rotary(x, COS, SIN)
    norm = (COS.float() ** 2 + SIN.float() ** 2)[:5].repeat(1, 2)[None, :, None]
    assert (apply_rotary(there, COS, SIN, conjugate=True) - x * norm).abs().max() < 1e-5


def test_in_place_forms():
    qkv = randn(1, 6, 3, 2, 20, seed=4)
    q, k, v = (t.clone() for t in qkv.unbind(2))
    want_q, want_k = apply_rotary(q, COS, SIN, 2), apply_rotary(k, SIN, COS, 2)
    assert apply_rotary(q, COS, SIN, 2, inplace=True) is q
    assert torch.equal(q, want_q)
    packed = torch.cat([t.clone() for t in qkv.unbind(2)], 2)
    assert apply_rotary_emb_qkv_(qkv, COS, SIN, SIN, COS, seqlen_offsets=2) is qkv
    assert torch.equal(qkv, torch.stack([want_q, want_k, v], 2))
    apply_rotary_emb_qkv_(packed, COS, SIN, SIN, COS, seqlen_offsets=2, num_heads_q=2)
    assert torch.equal(packed, torch.cat([want_q, want_k, v], 2))
    kv = torch.stack([k, v], 2)
    apply_rotary_emb_kv_(kv, SIN, COS, seqlen_offsets=2)
    assert torch.equal(kv, torch.stack([want_k, v], 2))


@pytest.mark.parametrize("inplace", [False, True])
def test_gradient(inplace):
    x = torch.randn(1, 3, 1, 18, dtype=torch.float64, requires_grad=True)
    want = torch.autograd.grad(apply_rotary(x, COS, SIN).sum(), x)[0]
    (got,) = torch.autograd.grad(apply_rotary(x * 1.0, COS, SIN, inplace=inplace).sum(), x)
    assert torch.equal(got, want)
    assert torch.equal(got[..., 16:], torch.ones(1, 3, 1, 2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: apply_rotary(x, COS, SIN[:, :4]), "cos and sin must both have shape"),
        (lambda x: apply_rotary(x[..., :8], COS, SIN), r"head_dim >= 16\); got \(1, 6, 3, 8\)"),
        (lambda x: apply_rotary(x, COS, SIN, 35), "cos has 40 positions; 41 are needed"),
        (lambda x: apply_rotary(x[0], COS, SIN), r"x must have shape \(batch, seqlen"),
        (lambda x: apply_rotary(x[0], COS, SIN, 0, torch.tensor([0, 6])), "max_seqlen must be given"),
        (lambda x: apply_rotary_emb_qkv_(x, COS, SIN), "qkv must have shape"),
    ],
)
def test_refuses(call, text):
    with pytest.raises(ValueError, match=text):
        call(randn(1, 6, 3, 16, seed=5))
