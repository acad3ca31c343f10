"""Gradients beside dropout: of the mask that the forward used, through every way to ask for them."""

import functools
import math

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint

import flashattn_rocm
from flashattn_rocm import flash_attn_func, flash_attn_varlen_func
from tests.kit.attention import attention
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE
from tests.kit.dropout import OPTIONS, kept
from tests.kit.gradients import assert_gradients, op_gradients

DTYPES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["f16", "bf16"])
fwd, bwd = torch.ops.flashattn_rocm.fwd, torch.ops.flashattn_rocm.bwd


def state(seed, offset=0):
    return torch.tensor([seed, offset], dtype=torch.int64, device=DEVICE)


def inputs(dtype=torch.float16, batch=2, seqlen_q=70, seqlen_k=100, heads=4, heads_kv=2, head_dim=64):
    """q, k, v and the gradient of out."""
    qkv = make_qkv(batch, seqlen_q, seqlen_k, heads, heads_kv, head_dim, seed=21)
    return tuple(x.to(dtype) for x in (*qkv, randn(batch, seqlen_q, heads, head_dim, seed=99)))


def leaves(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(tensor.detach().clone().requires_grad_() for tensor in tensors)


def drawn_state(seed):
    """What dropout_keywords draws after torch.manual_seed."""
    torch.manual_seed(seed)
    return torch.randint(2**63 - 1, (2,), dtype=torch.int64, device=DEVICE)


# Each of the kernels: by 16 bytes and by elements, of every head dim; blocks of 4 and of 2 rows a lane.
@DTYPES
@pytest.mark.parametrize("head_dim", [24, 64, 128, 256, 63, 100, 136])
def test_every_kernel(dtype, head_dim):
    tensors = inputs(dtype, batch=1, seqlen_q=150, seqlen_k=135, head_dim=head_dim)
    assert_gradients(*tensors, dropout_p=0.3, rng_state=state(0x0123456789ABCDEF, 0x7654321000000042))


@pytest.mark.parametrize("head_dim", [512, 260])
def test_kernels_of_large_head_dims(head_dim):
    tensors = inputs(batch=1, seqlen_q=37, seqlen_k=70, heads=2, heads_kv=1, head_dim=head_dim)
    assert_gradients(*tensors, dropout_p=0.3, rng_state=state(5, 2**32 + 1))


@DTYPES
@pytest.mark.parametrize("dropout_p", [0.02, 0.5, 0.9])
def test_rates(dtype, dropout_p):
    assert_gradients(*inputs(dtype), dropout_p=dropout_p, rng_state=state(-3))


@DTYPES
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(dtype, options):
    assert_gradients(*inputs(dtype), dropout_p=0.2, rng_state=state(77), **options)


@pytest.mark.parametrize(("seqlen_q", "seqlen_k"), [(1, 1), (1, 130), (130, 1), (63, 65), (257, 255)])
def test_lengths(seqlen_q, seqlen_k):
    tensors = inputs(seqlen_q=seqlen_q, seqlen_k=seqlen_k)
    assert_gradients(*tensors, few_keys=seqlen_k == 1, dropout_p=0.4, rng_state=state(8))


@DTYPES
def test_beside_all_that_changes_scores(dtype):
    options = {
        "alibi_slopes": randn(2, 4, seed=5).float().abs(),
        "attn_bias": randn(1, 4, 70, 100, seed=6),
        "sinks": randn(4, seed=7),
        "window_left": 50,
        "softcap": 4.0,
    }
    assert_gradients(*inputs(dtype), dropout_p=0.4, rng_state=state(78), **options)


# One launch, one for each batch item, for each head, and for each of both.
@pytest.mark.parametrize("shape", [(2, 4, 70, 100), (1, 4, 70, 100), (2, 1, 70, 100), (70, 100)], ids=str)
def test_gradients_of_bias_and_sinks(shape):
    """Launches that take turns on a shared bias are of one head or batch item, and drop what it would."""
    q, k, v, dout = inputs()
    bias, sinks = leaves(randn(*shape, seed=6).float(), randn(4, seed=7).float())
    options = {"dropout_p": 0.3, "rng_state": state(79, 3)}
    out, _ = fwd(q, k, v, attn_bias=bias, sinks=sinks, **options)
    got = torch.autograd.grad(out, (bias, sinks), dout)
    keep = kept(options["rng_state"], 0.3, 2, 4, 70, 100)

    def by_definition(precision: torch.dtype) -> tuple[torch.Tensor, ...]:
        exact = leaves(bias.to(precision), sinks.to(precision))
        tensors = (x.to(precision) for x in (q, k, v))
        changes = {"attn_bias": exact[0], "sinks": exact[1], "keep": keep, "dropout_p": 0.3}
        out = attention(*tensors, **changes, precision=precision).out
        return torch.autograd.grad(out, exact, dout.to(precision))

    for mine, right, theirs in zip(
        got, by_definition(torch.float64), by_definition(torch.float16), strict=True
    ):
        allowed = 2 * (theirs.double() - right).abs().max() + 2**-11 * right.abs().max()
        assert (mine.double() - right).abs().max() <= allowed


def test_what_is_dropped_has_no_share():
    """Of a row whose probabilities are all dropped nothing is left, and of a dropped one none in dV."""
    q, k, v, dout = inputs(batch=1, heads=1, heads_kv=1, seqlen_q=64, seqlen_k=64)
    rng_state = state(1)
    dq, dk, dv = op_gradients(q, k, v, dout, dropout_p=1 - 1e-9, rng_state=rng_state)
    assert not dq.any()
    assert not dk.any()
    assert not dv.any()
    # With scores of 0 and one-hot dout, dV is the mask.
    one_hot = torch.eye(64, dtype=torch.float16, device=DEVICE)[None, :, None]
    q, k = torch.zeros_like(q), torch.zeros_like(k)
    _, _, dv = op_gradients(q, k, v, one_hot, dropout_p=0.4, rng_state=rng_state)
    assert (dv[0, :, 0].T != 0).equal(kept(rng_state, 0.4, 1, 1, 64, 64)[0, 0])
    nothing = op_gradients(q, k, v, dout, dropout_p=1e-9, rng_state=rng_state)
    everything = torch.ones(1, 1, 1, 64, dtype=torch.bool, device=DEVICE)  # for the same kernel
    for a, b in zip(nothing, op_gradients(q, k, v, dout, attn_bias=everything), strict=True):
        assert a.equal(b)


@DTYPES
def test_runs_are_bitwise_equal(dtype):
    tensors = inputs(dtype, seqlen_q=150)
    options = {"causal": True, "dropout_p": 0.3, "rng_state": state(4)}
    first = op_gradients(*tensors, **options)
    assert all(a.equal(b) for a, b in zip(first, op_gradients(*tensors, **options), strict=True))


def test_nan_in_dout_reaches_no_dropped_key_but_by_its_row():
    q, k, v, dout = inputs(batch=1, heads=1, heads_kv=1)
    dout[0, 9, 0, 2] = math.nan
    dq, _, _ = op_gradients(q, k, v, dout, dropout_p=0.5, rng_state=state(2))
    rows = dq.isnan().any(-1)[0, :, 0]
    assert rows.nonzero().flatten().tolist() == [9]


def test_function_uses_the_mask_that_it_returns():
    q, k, v, dout = inputs()
    tracked = leaves(q, k, v)
    torch.manual_seed(6)
    out, _, probs = flash_attn_func(*tracked, 0.3, causal=True, return_attn_probs=True)
    got = torch.autograd.grad(out, tracked, dout)
    rng_state = drawn_state(6)
    hidden = ~torch.ones(70, 100, dtype=torch.bool, device=DEVICE).tril(30)
    assert (~torch.signbit(probs) | hidden).equal(kept(rng_state, 0.3, 2, 4, 70, 100) | hidden)
    assert_gradients(q, k, v, dout, got, causal=True, dropout_p=0.3, rng_state=rng_state)


@pytest.mark.parametrize("name", ["qkvpacked", "kvpacked", "varlen_qkvpacked", "varlen_kvpacked"])
def test_packed_forms(name):
    q, k, v, dout = inputs(batch=1, seqlen_q=40, seqlen_k=40, heads=2, heads_kv=2, head_dim=32)
    torch.manual_seed(3)
    plain = leaves(q, k, v)
    want = torch.autograd.grad(flash_attn_func(*plain, 0.5), plain, dout)
    qkv = torch.stack((q, k, v), 2)
    tensors = (qkv,) if "qkv" in name else (q, qkv[:, :, 1:])
    lengths = ()
    if name.startswith("varlen"):
        tensors, dout = tuple(t[0] for t in tensors), dout[0]
        cu = torch.tensor([0, 40], dtype=torch.int32, device=DEVICE)
        lengths = (cu, 40) if "qkv" in name else (cu, cu, 40, 40)
    tensors = leaves(*tensors)
    torch.manual_seed(3)
    out = getattr(flashattn_rocm, f"flash_attn_{name}_func")(*tensors, *lengths, 0.5)
    gradients = torch.autograd.grad(out, tensors, dout)
    got = (*gradients[:-1], *gradients[-1].unbind(-3))
    for a, b in zip(got, want, strict=True):
        assert (a if a.dim() == 4 else a[None]).equal(b)


def test_packed_sequences():
    lengths_q, lengths_k = [5, 0, 40, 1], [9, 3, 33, 0]
    cu_q, cu_k = (
        torch.tensor([0, *torch.tensor(n).cumsum(0).tolist()], dtype=torch.int32, device=DEVICE)
        for n in (lengths_q, lengths_k)
    )
    q, k, v = leaves(randn(46, 4, 32, seed=1), randn(45, 2, 32, seed=2), randn(45, 2, 32, seed=3))
    dout = randn(46, 4, 32, seed=4)
    torch.manual_seed(9)
    out = flash_attn_varlen_func(q, k, v, cu_q, cu_k, 40, 33, 0.25, causal=True)
    dq, dk, dv = torch.autograd.grad(out, (q, k, v), dout)
    keep = kept(drawn_state(9), 0.25, 4, 4, 40, 33)
    for b, (rows, keys) in enumerate(zip(lengths_q, lengths_k, strict=True)):
        mine, theirs = slice(cu_q[b], cu_q[b + 1]), slice(cu_k[b], cu_k[b + 1])
        alone = leaves(*(x[None].double() for x in (q[mine], k[theirs], v[theirs])))
        options = {"causal": True, "keep": keep[b : b + 1, :, :rows, :keys], "dropout_p": 0.25}
        want = torch.autograd.grad(attention(*alone, **options).out, alone, dout[None, mine].double())
        for got, right in zip((dq[mine], dk[theirs], dv[theirs]), want, strict=True):
            assert got.numel() == 0 or (got - right[0]).abs().max() <= 4e-3 * max(1, right.abs().max())


def test_gradients_add_up_over_micro_batches():
    """Each call draws a mask of its own, and each gradient is of its call's."""
    q, k, v, dout = inputs()
    tracked = leaves(q, k, v)
    torch.manual_seed(10)
    for _ in range(2):
        flash_attn_func(*tracked, 0.3).backward(dout)
    torch.manual_seed(10)
    states = [torch.randint(2**63 - 1, (2,), dtype=torch.int64, device=DEVICE) for _ in range(2)]
    each = [op_gradients(q, k, v, dout, dropout_p=0.3, rng_state=one) for one in states]
    assert not each[0][0].equal(each[1][0])
    for tensor, first, second in zip(tracked, *each, strict=True):
        assert tensor.grad.equal(first + second)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoints_compute_the_same_mask_again(use_reentrant):
    q, k, v, dout = inputs()

    def attend(q, k, v):
        torch.rand(3)  # other random numbers before it
        return flash_attn_func(q * 2, k, v, 0.4, causal=True)

    results = []
    for run in (attend, functools.partial(checkpoint, attend, use_reentrant=use_reentrant)):
        tracked = leaves(q, k, v)
        torch.manual_seed(5)
        out = run(*tracked)
        torch.rand(1)  # the state that the recomputation finds is another one
        out.backward(dout)
        results.append((out.detach(), *(x.grad for x in tracked)))
    assert all(a.equal(b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("packed", [False, True])
def test_compiled_without_a_graph_break(packed):
    torch._dynamo.reset()
    q, k, v, _ = inputs(seqlen_k=70, heads_kv=4, head_dim=32)

    def attend(q, k, v):
        if packed:
            qkv = torch.stack([q * 2, k, v], 2)
            return flashattn_rocm.flash_attn_qkvpacked_func(qkv, 0.5, causal=True) + 1
        return flash_attn_func(q * 2, k, v, 0.5, causal=True) + 1

    results = []
    for run in (attend, torch.compile(attend, fullgraph=True, backend="aot_eager")):
        tracked = leaves(q, k, v)
        torch.manual_seed(1)
        out = run(*tracked)
        out.sum().backward()
        results.append((out.detach(), *(x.grad for x in tracked)))
    assert all(a.equal(b) for a, b in zip(*results, strict=True))


@DTYPES
def test_scaled_dot_product_attention(dtype):
    q, k, v, dout = inputs(dtype, heads_kv=4)
    tracked = leaves(*(x.transpose(1, 2) for x in (q, k, v)))
    torch.manual_seed(12)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        out = scaled_dot_product_attention(*tracked, dropout_p=0.25)
    assert counts.served == 1
    got = torch.autograd.grad(out, tracked, dout.transpose(1, 2))
    got = tuple(x.transpose(1, 2) for x in got)
    assert_gradients(q, k, v, dout, got, dropout_p=0.25, rng_state=drawn_state(12))


def test_the_flash_operation_of_aten():
    q, k, v, dout = (x.transpose(1, 2) for x in inputs(seqlen_k=70, heads_kv=4, head_dim=32))
    tracked = leaves(q, k, v)
    torch.manual_seed(13)
    with flashattn_rocm.sdpa(fallback=False):
        out = torch.ops.aten._scaled_dot_product_flash_attention(*tracked, 0.5, True)[0]
        got = torch.autograd.grad(out, tracked, dout)
    want = op_gradients(
        *(x.transpose(1, 2) for x in (q, k, v, dout)),
        causal=True,
        dropout_p=0.5,
        rng_state=drawn_state(13),
    )
    assert all(a.equal(b.transpose(1, 2)) for a, b in zip(got, want, strict=True))


def test_opcheck():
    q, k, v, dout = inputs(seqlen_q=9, seqlen_k=20)
    options = {"causal": True, "dropout_p": 0.5, "rng_state": state(1)}
    out, lse = fwd(q, k, v, **options)
    torch.library.opcheck(bwd.default, (dout, q, k, v, out, lse), options)
    torch.library.opcheck(fwd.default, leaves(q, k, v), options)


def test_a_second_derivative_is_refused_beside_dropout():
    q, k, v, _ = inputs()
    tracked = leaves(q, k, v)
    (dq,) = torch.autograd.grad(flash_attn_func(*tracked, 0.5).sum(), tracked[0], create_graph=True)
    with pytest.raises(NotImplementedError, match="no second derivative of attention"):
        dq.sum().backward()


def test_the_op_wants_the_state_of_the_forward():
    q, k, v, dout = inputs()
    out, lse = fwd(q, k, v, dropout_p=0.5, rng_state=state(1))
    with pytest.raises(ValueError, match=r"dropout_p=0.5 needs rng_state"):
        bwd(dout, q, k, v, out, lse, dropout_p=0.5)
