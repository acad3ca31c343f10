"""Dropout: which probabilities are dropped, what becomes of the others, and where the seed comes from."""

import math

import pytest
import torch

import flashattn_rocm
from flashattn_rocm import flash_attn_func, flash_attn_varlen_func
from flashattn_rocm.accuracy import rounding_error
from tests.kit.attention import attention
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE
from tests.kit.dropout import OPTIONS, kept, philox4x32_10
from tests.kit.tolerance import assert_attention

fwd = torch.ops.flashattn_rocm.fwd
attn_probs = torch.ops.flashattn_rocm.attn_probs


def state(seed: int, offset: int = 0) -> torch.Tensor:
    return torch.tensor([seed, offset], dtype=torch.int64, device=DEVICE)


def forward_mask(
    head_dim: int,
    seqlen_q: int,
    seqlen_k: int,
    rng_state: torch.Tensor,
    dropout_p: float,
    dtype: torch.dtype = torch.float16,
    batch: int = 2,
    heads: int = 2,
) -> torch.Tensor:
    """What the forward keeps: with equal scores and one-hot values its output is the mask, scaled."""
    q = torch.zeros(batch, seqlen_q, heads, head_dim, dtype=dtype, device=DEVICE)
    k = torch.zeros(batch, seqlen_k, heads, head_dim, dtype=dtype, device=DEVICE)
    columns = []
    for first in range(0, seqlen_k, head_dim):
        one_hot = torch.zeros(seqlen_k, head_dim, dtype=dtype, device=DEVICE)
        count = min(head_dim, seqlen_k - first)
        one_hot[first : first + count, :count].fill_diagonal_(1)
        v = one_hot[None, :, None].expand(batch, seqlen_k, heads, head_dim)
        out, _ = fwd(q, k, v, dropout_p=dropout_p, rng_state=rng_state)
        columns.append(out[..., :count])
    weights = torch.cat(columns, -1).transpose(1, 2).float()
    scaled = torch.full_like(weights, 1 / (1 - dropout_p) / seqlen_k)
    one_place = torch.finfo(torch.bfloat16).eps  # of the dtype with the fewest digits
    torch.testing.assert_close(weights.where(weights != 0, scaled), scaled, rtol=one_place, atol=0)
    return weights != 0


def test_reference_gives_the_published_numbers():
    # kat_vectors of Random123, the authors' library.
    for counter, key, want in (
        ((0, 0, 0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ):
        assert " ".join(f"{int(word):08x}" for word in philox4x32_10(counter, key)) == want


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=["f16", "bf16", "f32"])
@pytest.mark.parametrize("head_dim", [32, 64, 128, 256, 63, 100, 136, 260])
def test_every_kernel_keeps_what_the_layout_says(head_dim, dtype):
    # More than one block each way: the largest is 128 rows by 64 keys to D128, 32 by 64 beyond.
    seqlen_q, seqlen_k = (37, 70) if head_dim > 128 else (150, 135)
    rng_state = state(0x0123456789ABCDEF, 0x7654321000000042)
    mask = forward_mask(head_dim, seqlen_q, seqlen_k, rng_state, 0.3, dtype)
    assert mask.equal(kept(rng_state, 0.3, 2, 2, seqlen_q, seqlen_k))


@pytest.mark.parametrize("dropout_p", [0.01, 0.1, 0.5, 0.9])
def test_rate_and_independence(dropout_p):
    q = torch.zeros(2, 256, 4, 32, dtype=torch.float16, device=DEVICE)
    lse = torch.full((2, 4, 256), math.log(256), device=DEVICE)
    probs = attn_probs(q, q, lse, dropout_p=dropout_p, rng_state=state(-5, 11))
    dropped = torch.signbit(probs).double()
    assert dropped.to(torch.bool).equal(~kept(state(-5, 11), dropout_p, 2, 4, 256, 256))

    def assert_within(values: torch.Tensor, mean: float, spread: float) -> None:
        # Six standard deviations of a mean of so many independent values.
        assert abs(values.mean().item() - mean) < 6 * spread / math.sqrt(values.numel())

    spread = math.sqrt(dropout_p * (1 - dropout_p))
    assert_within(dropped, dropout_p, spread)
    for part in (*dropped.flatten(0, 1), *dropped.unbind(2)[:32], *dropped.unbind(3)[:32]):
        assert_within(part, dropout_p, spread)
    centred = dropped - dropout_p
    pairs = {
        "batch": (centred[0], centred[1]),
        "head": (centred[:, :-1], centred[:, 1:]),
        **{f"row + {n}": (centred[:, :, :-n], centred[:, :, n:]) for n in (1, 4, 16, 64)},
        **{f"key + {n}": (centred[..., :-n], centred[..., n:]) for n in (1, 4, 16, 32, 64)},
        "transposed": (centred, centred.mT),
    }
    for name, (one, other) in pairs.items():
        if name == "transposed":
            one, other = one.triu(1), other.triu(1)
        product = one * other
        bound = 6 * spread**2 * math.sqrt(product.numel())
        assert abs(product.sum().item()) < bound, name


def test_seed_and_offset_both_count_whole():
    words = [(1, 0), (2, 0), (1 + 2**32, 0), (1, 1), (2, 2**32), (-1, 0)]
    masks = [forward_mask(32, 64, 64, state(*each), 0.5) for each in words]
    for i, mask in enumerate(masks):
        assert mask.equal(forward_mask(32, 64, 64, state(*words[i]), 0.5))
        for other in masks[:i]:
            # Half of 16384 independent bits agree, with a standard deviation of 0.004.
            assert abs((mask == other).float().mean() - 0.5) < 6 * 0.004


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=["f16", "bf16", "f32"])
@pytest.mark.parametrize("options", [{}, *OPTIONS], ids=str)
def test_output(options, dtype):
    q, k, v = (x.to(dtype) for x in make_qkv(2, 90, 110, 4, 2, head_dim=64, seed=3))
    rng_state = state(77)
    out, lse = fwd(q, k, v, dropout_p=0.2, rng_state=rng_state, **options)
    keep = kept(rng_state, 0.2, 2, 4, 90, 110)
    assert_attention(q, k, v, out, lse, keep=keep, dropout_p=0.2, **options)


@pytest.mark.parametrize("head_dim", [24, 128, 256, 63])
def test_output_beside_all_that_changes_scores(head_dim):
    q, k, v = make_qkv(2, 40, 75, 4, 2, head_dim=head_dim, seed=4)
    options = {
        "alibi_slopes": randn(2, 4, seed=5).float(),
        "attn_bias": randn(1, 4, 40, 75, seed=6),
        "sinks": randn(4, seed=7),
        "window_left": 50,
    }
    rng_state = state(78)
    out, lse = fwd(q, k, v, dropout_p=0.4, rng_state=rng_state, **options)
    keep = kept(rng_state, 0.4, 2, 4, 40, 75)
    assert_attention(q, k, v, out, lse, keep=keep, dropout_p=0.4, **options)


def test_log_sum_exp_is_that_without_dropout():
    q, k, v = make_qkv(2, 90, 110, 4, 2, seed=8)
    everything = torch.ones(1, 1, 1, 110, dtype=torch.bool, device=DEVICE)  # for the same kernel
    _, with_dropout = fwd(q, k, v, attn_bias=everything, dropout_p=0.5, rng_state=state(1))
    assert with_dropout.equal(fwd(q, k, v, attn_bias=everything)[1])


def test_rates_at_the_ends():
    q, k, v = make_qkv(1, 40, 40, 2, seed=9)
    everything = torch.ones(1, 1, 1, 40, dtype=torch.bool, device=DEVICE)
    out, _ = fwd(q, k, v, attn_bias=everything, dropout_p=1e-9, rng_state=state(1))
    assert out.equal(fwd(q, k, v, attn_bias=everything)[0])
    assert not fwd(q, k, v, dropout_p=1 - 1e-9, rng_state=state(1))[0].any()
    assert fwd(q, k, v, rng_state=state(1))[0].equal(fwd(q, k, v)[0])


def test_rows_without_keys():
    q, k, v = make_qkv(1, 20, 5, 2, seed=10)
    torch.manual_seed(0)
    out, lse, probs = flash_attn_func(q, k, v, 0.3, causal=True, return_attn_probs=True)
    assert not out[:, :15].any()
    assert (lse[..., :15] == -math.inf).all()
    assert not probs[:, :, :15].any()
    out, lse, probs = flash_attn_func(q, k[:, :0], v[:, :0], 0.3, return_attn_probs=True)
    assert not out.any()
    assert probs.shape == (1, 2, 20, 0)


def test_seed_comes_from_torchs_generator():
    qkv = make_qkv(1, 40, 40, 2, seed=11)
    torch.manual_seed(5)
    first, second = flash_attn_func(*qkv, 0.5), flash_attn_func(*qkv, 0.5)
    assert not first.equal(second)
    torch.manual_seed(5)
    assert flash_attn_func(*qkv, 0.5).equal(first)
    with torch.random.fork_rng(devices=[] if DEVICE.type == "cpu" else None):
        again = flash_attn_func(*qkv, 0.5)
    assert again.equal(second)
    assert flash_attn_func(*qkv, 0.5).equal(second)
    before = torch.get_rng_state()
    flash_attn_func(*qkv)
    assert torch.get_rng_state().equal(before)


def test_s_dmask_and_output_belong_together():
    q, k, v = make_qkv(2, 50, 70, 4, 2, seed=12)
    out, _, probs = flash_attn_func(q, k, v, 0.3, causal=True, return_attn_probs=True)
    assert (probs.shape, probs.dtype) == ((2, 4, 50, 70), torch.float16)
    assert probs.abs().amax(-1).eq(1).all()
    weights = probs.double().abs()
    weights = weights / weights.sum(-1, keepdim=True) * (probs > 0) / 0.7
    want = torch.einsum("bhij,bjhd->bihd", weights, v.double().repeat_interleave(2, 2))
    # fp16 rounds S_dmask, 2^-11 of a sum up to 4, and out, 2^-10 between 2 and 4.
    assert (out.double() - want).abs().max() < 3e-3
    hidden = ~torch.ones(50, 70, dtype=torch.bool, device=DEVICE).tril(20)
    assert not probs[..., hidden].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=["f16", "bf16", "f32"])
def test_probabilities_are_those_of_the_definition(dtype):
    q, k, v = (x.to(dtype) for x in make_qkv(2, 30, 40, 4, 2, seed=13))
    options = {
        "softcap": 5.0,
        "attn_bias": randn(4, 30, 40, seed=14),
        "alibi_slopes": randn(4, seed=15).float(),
        "window_left": 20,
        "causal": True,
        "softmax_scale": 0.2,
    }
    _, lse = fwd(q, k, v, **options)
    probs = attn_probs(q, k, lse, **options)
    one_hot = torch.eye(40, 40, device=DEVICE)[None, :, None].expand(2, 40, 2, 40)
    want = attention(q, k, one_hot.to(dtype), **options).out.transpose(1, 2)
    # Sums and exponentials are fp32 in every dtype; then a probability, at most 1, is rounded to the dtype.
    allowed = rounding_error(1.0, torch.float32) + rounding_error(1.0, dtype)
    assert (probs.double() - want).abs().max() < allowed
    assert not torch.signbit(probs).any()


def test_probabilities_of_a_row_that_is_no_number():
    q, k, v = make_qkv(1, 10, 20, 1, 1, seed=16)
    q[0, 3, 0, 0] = math.nan
    _, lse = fwd(q, k, v, 1.0)
    probs = attn_probs(q, k, lse, 1.0)
    assert probs[0, 0, 3].isnan().all()
    assert probs[0, 0, :3].isfinite().all()


def test_packed_sequences():
    lengths_q, lengths_k = [5, 0, 40, 1], [9, 3, 33, 0]
    cu_q, cu_k = (
        torch.tensor([0, *torch.tensor(n).cumsum(0).tolist()], dtype=torch.int32, device=DEVICE)
        for n in (lengths_q, lengths_k)
    )
    q, k, v = randn(46, 4, 32, seed=1), randn(45, 2, 32, seed=2), randn(45, 2, 32, seed=3)
    torch.manual_seed(9)
    out, lse, probs = flash_attn_varlen_func(
        q, k, v, cu_q, cu_k, 40, 33, 0.25, causal=True, return_attn_probs=True
    )
    assert probs.shape == (4, 4, 40, 33)
    torch.manual_seed(9)
    keep = kept(torch.randint(2**63 - 1, (2,), device=DEVICE), 0.25, 4, 4, 40, 33)
    for b, (rows, keys) in enumerate(zip(lengths_q, lengths_k, strict=True)):
        mine_q, mine_k = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        assert_attention(
            q[None, mine_q],
            k[None, mine_k],
            v[None, mine_k],
            out[None, mine_q],
            lse[None, :, mine_q],
            causal=True,
            keep=keep[b : b + 1, :, :rows, :keys],
            dropout_p=0.25,
        )
        inside = torch.zeros_like(probs[b], dtype=torch.bool)
        inside[:, :rows, :keys] = True
        assert not probs[b][~inside].any()
        seen = probs[b] != 0
        assert (torch.signbit(probs[b]) == ~keep[b])[seen].all()


@pytest.mark.parametrize("name", ["qkvpacked", "kvpacked", "varlen_qkvpacked", "varlen_kvpacked"])
def test_packed_forms(name):
    q, k, v = make_qkv(1, 40, 40, 2, head_dim=32, seed=16)
    qkv = torch.stack((q, k, v), 2)
    tensors = (qkv,) if "qkv" in name else (q, qkv[:, :, 1:])
    lengths: tuple = ()
    if name.startswith("varlen"):
        tensors = tuple(t[0] for t in tensors)
        cu = torch.tensor([0, 40], dtype=torch.int32, device=DEVICE)
        lengths = (cu, 40) if "qkv" in name else (cu, cu, 40, 40)
    torch.manual_seed(3)
    want = flash_attn_func(q, k, v, 0.5, return_attn_probs=True)
    torch.manual_seed(3)
    function = getattr(flashattn_rocm, f"flash_attn_{name}_func")
    out, lse, probs = function(*tensors, *lengths, 0.5, return_attn_probs=True)
    assert (out if out.dim() == 4 else out[None]).equal(want[0])
    assert (lse if lse.dim() == 3 else lse[None]).equal(want[1])
    assert probs.equal(want[2])


@pytest.mark.parametrize(
    ("keywords", "error", "text"),
    [
        ({}, ValueError, r"dropout_p=0.5 needs rng_state"),
        ({"rng_state": torch.zeros(2)}, TypeError, r"rng_state must have dtype int64; it has torch.float32"),
        ({"rng_state": torch.zeros(3).long()}, ValueError, r"rng_state must have shape \(2,\).*; .* \[3\]"),
        ({"rng_state": torch.zeros(4).long()[::2]}, ValueError, "rng_state must be contiguous"),
        ({"rng_state": torch.zeros(2, device="meta").long()}, ValueError, "rng_state must be on the device"),
        ({"dropout_p": 1.0}, ValueError, "dropout_p must be at least 0 and below 1; it is 1"),
        ({"dropout_p": math.nan}, ValueError, "dropout_p must be at least 0 and below 1; it is nan"),
    ],
)
def test_the_op_refuses(keywords, error, text):
    q, k, v = make_qkv()
    given = {name: x.to(DEVICE) if getattr(x, "is_cpu", False) else x for name, x in keywords.items()}
    with pytest.raises(error, match=text):
        fwd(q, k, v, **({"dropout_p": 0.5} | given))


@pytest.mark.parametrize(
    ("lse", "error", "text"),
    [
        (torch.zeros(1, 2, 39), ValueError, r"softmax_lse must be that of the forward, .*; .* \[1, 2, 39\]"),
        (torch.zeros(1, 2, 40).double(), TypeError, "softmax_lse must have dtype float32"),
        (torch.zeros(1, 2, 80)[..., ::2], ValueError, "softmax_lse must have a contiguous last dimension"),
        (torch.zeros(1, 2, 40, device="meta"), ValueError, "softmax_lse must be on the device of q"),
    ],
)
def test_probabilities_refuse_another_log_sum_exp(lse, error, text):
    q, k, _ = make_qkv()
    with pytest.raises(error, match=text):
        attn_probs(q, k, lse.to(DEVICE) if lse.is_cpu else lse)


def test_opcheck():
    q, k, v = make_qkv(2, 9, 20, 4, 2)
    keywords = {"causal": True, "dropout_p": 0.5, "rng_state": state(1)}
    torch.library.opcheck(fwd.default, (q, k, v), keywords)
    _, lse = fwd(q, k, v, **keywords)
    torch.library.opcheck(attn_probs.default, (q, k, lse), keywords)


def test_compiled_without_a_graph_break():
    torch._dynamo.reset()
    qkv = make_qkv(2, 9, 20, 4, 2)

    def attend(q, k, v):
        return flash_attn_func(q * 2, k, v, 0.5, return_attn_probs=True)

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    want = attend(*qkv)
    torch.manual_seed(1)
    for got, one in zip(compiled(*qkv), want, strict=True):
        assert got.equal(one)
