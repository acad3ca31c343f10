"""What other packages import from flash_attn, and that it computes what upstream's names promise."""

import inspect

import pytest
import torch

import flashattn_rocm
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

pytestmark = pytest.mark.usefixtures("installed_shim")

MASKING = "causal, window_size_left, window_size_right, softcap, alibi_slopes"
SEQUENCES = "cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k"
PRIVATE = {
    "_flash_attn_forward": f"q, k, v, dropout_p, softmax_scale, {MASKING}, return_softmax",
    "_flash_attn_backward": (
        f"dout, q, k, v, out, softmax_lse, dq, dk, dv, dropout_p, softmax_scale, {MASKING}, deterministic, "
        "rng_state"
    ),
    "_flash_attn_varlen_forward": (
        f"q, k, v, {SEQUENCES}, dropout_p, softmax_scale, {MASKING}, return_softmax, block_table, leftpad_k, "
        "seqused_k, zero_tensors"
    ),
    "_flash_attn_varlen_backward": (
        f"dout, q, k, v, out, softmax_lse, dq, dk, dv, {SEQUENCES}, dropout_p, softmax_scale, {MASKING}, "
        "deterministic, rng_state, zero_tensors"
    ),
}
OPTIONS = (0.0, 0.3, True, -1, -1, 0.0, None)  # dropout_p to alibi_slopes


@pytest.mark.parametrize("name", PRIVATE)
def test_private_parameters_survive_introspection(name):
    from flash_attn import flash_attn_interface

    op = getattr(flash_attn_interface, name)
    assert ", ".join(inspect.getfullargspec(op._init_fn).args) == PRIVATE[name]
    assert getattr(flash_attn_interface, "_wrapped" + name) is getattr(torch.ops.flash_attn, name)


@pytest.mark.parametrize(
    "name",
    ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_qkvpacked_func", "flash_attn_kvpacked_func"],
)
def test_public_signatures(name):
    import flash_attn

    def positional(function):
        parameters = inspect.signature(function).parameters.values()
        return [(p.name, p.default) for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]

    assert positional(getattr(flash_attn, name)) == positional(getattr(flashattn_rocm, name))


@pytest.mark.parametrize("compiled", [False, True])
def test_private_forward(compiled):
    from flash_attn.flash_attn_interface import _wrapped_flash_attn_forward

    q, k, v = make_qkv(seqlen_q=9, heads_q=4, heads_kv=2)
    call = (
        torch.compile(_wrapped_flash_attn_forward, backend="aot_eager")
        if compiled
        else _wrapped_flash_attn_forward
    )
    out, lse, probs, rng_state = call(q, k, v, *OPTIONS, False)
    want, want_lse, _ = flashattn_rocm.flash_attn_func(q, k, v, 0.0, 0.3, True, return_attn_probs=True)
    assert torch.equal(out, want)
    assert torch.equal(lse, want_lse)
    assert (probs.shape, rng_state.shape, rng_state.dtype) == ((0,), (2,), torch.int64)


def test_private_varlen_forward():
    from flash_attn.flash_attn_interface import _flash_attn_varlen_forward

    q, k, v = (randn(12, 2, 32, seed=s) for s in range(3))
    cu = torch.tensor([0, 5, 12], dtype=torch.int32, device=DEVICE)
    out, lse, *_ = _flash_attn_varlen_forward(q, k, v, cu, cu, 7, 7, 0.0, 0.3, True, window_size_left=2)
    want, want_lse, _ = flashattn_rocm.flash_attn_varlen_func(
        q, k, v, cu, cu, 7, 7, 0.0, 0.3, True, (2, -1), return_attn_probs=True
    )
    assert torch.equal(out, want)
    assert torch.equal(lse, want_lse)


def test_extension_entry_points():
    from flash_attn.flash_attn_interface import flash_attn_gpu

    q, k, v = make_qkv(seqlen_q=9)
    given = torch.empty_like(q)
    out, *_ = flash_attn_gpu.fwd(q, k, v, given, None, 0.0, 0.3, False, -1, -1, 0.0, False, None)
    assert out is given
    assert torch.equal(out, flashattn_rocm.flash_attn_func(q, k, v, 0.0, 0.3))
    with pytest.raises(
        RuntimeError, match="RNG `generator` argument is no longer supported and must be None"
    ):
        flash_attn_gpu.fwd(
            q, k, v, None, None, 0.0, 0.3, False, -1, -1, 0.0, False, torch.Generator(device=DEVICE)
        )
    with pytest.raises(RuntimeError, match=r"return_softmax is only supported when p_dropout > 0.0"):
        flash_attn_gpu.fwd(q, k, v, None, None, 0.0, 0.3, False, -1, -1, 0.0, True, None)


@pytest.mark.parametrize("packed", [False, True])
def test_private_backward(packed):
    from flash_attn import flash_attn_interface

    q, k, v, dout = (randn(1, 9, 2, 32, seed=s) for s in range(4))
    lengths: tuple = ()
    if packed:
        cu = torch.tensor([0, 4, 9], dtype=torch.int32, device=DEVICE)
        q, k, v, dout, lengths = q[0], k[0], v[0], dout[0], (cu, cu, 5, 5)
    middle = "_varlen" if packed else ""
    forward = getattr(flash_attn_interface, f"_flash_attn{middle}_forward")
    backward = getattr(flash_attn_interface, f"_flash_attn{middle}_backward")
    out, lse, *_ = forward(q, k, v, *lengths, *OPTIONS, False)
    # Slices of one tensor, as packed gradients are.
    given = torch.empty(*q.shape[:-2], 3, *q.shape[-2:], dtype=q.dtype, device=DEVICE).unbind(-3)
    if not hasattr(torch.ops.flashattn_rocm, "bwd"):
        with pytest.raises(NotImplementedError, match="backward is not served yet"):
            backward(dout, q, k, v, out, lse, *given, *lengths, *OPTIONS, False)
        return
    delta = backward(dout, q, k, v, out, lse, *given, *lengths, *OPTIONS, False)
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    function = flashattn_rocm.flash_attn_varlen_func if packed else flashattn_rocm.flash_attn_func
    want = torch.autograd.grad(function(*leaves, *lengths, 0.0, 0.3, True), leaves, dout)
    for got, one in zip(given, want, strict=True):
        assert torch.equal(got, one)
    assert (delta - (dout.float() * out.float()).sum(-1).mT).abs().max() < 1e-5


def test_sinks_by_the_name_that_transformers_looks_for():
    import flash_attn

    q, k, v = make_qkv(seqlen_q=9)
    sinks = torch.tensor([1.0, 2.0], device=DEVICE)
    want = flashattn_rocm.flash_attn_func(q, k, v, sinks=sinks)
    assert torch.equal(flash_attn.flash_attn_func(q, k, v, s_aux=sinks), want)
    cu = torch.tensor([0, 9], dtype=torch.int32, device=DEVICE)
    packed = flash_attn.flash_attn_varlen_func(q[0], k[0], v[0], cu, cu, 9, 9, s_aux=sinks)
    assert (packed - want[0]).abs().max() < 2e-3


def test_modules_of_model_code():
    from flash_attn.bert_padding import index_first_axis, pad_input, unpad_input  # noqa: F401
    from flash_attn.flash_attn_interface import USE_TRITON_ROCM, _get_block_size_n
    from flash_attn.layers.rotary import apply_rotary_emb, apply_rotary_emb_func
    from flash_attn.ops.triton.rotary import apply_rotary  # noqa: F401

    assert apply_rotary_emb is apply_rotary_emb_func
    assert not USE_TRITON_ROCM
    assert _get_block_size_n(DEVICE, 64, True, False) >= 1 << 20


def test_cache_takes_sinks_by_transformers_name():
    import flash_attn

    q, k, v = make_qkv(seqlen_q=1, seqlen_k=30)
    sinks = torch.tensor([1.0, -1.0], device=DEVICE)
    out, lse = flash_attn.flash_attn_with_kvcache(q, k, v, s_aux=sinks, return_softmax_lse=True)
    assert (out - flash_attn.flash_attn_func(q, k, v, s_aux=sinks)).abs().max() < 2e-3
    assert lse.shape == (1, 2, 1)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_private_forward_with_dropout(packed, compiled):
    from flash_attn import flash_attn_interface

    q, k, v = (randn(1, 9, 2, 32, seed=s) for s in range(3))
    lengths: tuple = ()
    if packed:
        cu = torch.tensor([0, 4, 9], dtype=torch.int32, device=DEVICE)
        q, k, v, lengths = q[0], k[0], v[0], (cu, cu, 5, 5)
    call = getattr(flash_attn_interface, f"_wrapped_flash_attn{'_varlen' if packed else ''}_forward")
    call = torch.compile(call, backend="aot_eager") if compiled else call
    torch.manual_seed(4)
    out, lse, probs, rng_state = call(q, k, v, *lengths, 0.5, *OPTIONS[1:], True)
    torch.manual_seed(4)
    function = flashattn_rocm.flash_attn_varlen_func if packed else flashattn_rocm.flash_attn_func
    want = function(q, k, v, *lengths, 0.5, 0.3, True, return_attn_probs=True)
    assert all(torch.equal(got, one) for got, one in zip((out, lse, probs), want, strict=True))
    keywords = {"softmax_scale": 0.3, "causal": True, "dropout_p": 0.5, "rng_state": rng_state}
    if packed:
        keywords |= {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 5, "max_seqlen_k": 5}
    assert torch.equal(torch.ops.flashattn_rocm.fwd(q, k, v, **keywords)[0], out)


def test_private_backward_wants_the_state_of_the_forward():
    from flash_attn.flash_attn_interface import flash_attn_gpu

    q, k, v = make_qkv(seqlen_q=9)
    with pytest.raises(ValueError, match=r"dropout_p=0.5 needs the rng_state that the forward returned"):
        flash_attn_gpu.bwd(
            q, q, k, v, q, q, None, None, None, None, 0.5, 0.3, True, -1, -1, 0.0, False, None, None
        )


def test_private_forward_of_a_paged_cache():
    from flash_attn.flash_attn_interface import _flash_attn_varlen_forward

    q, k, v = randn(5, 4, 64, seed=1), randn(4, 16, 2, 64, seed=2), randn(4, 16, 2, 64, seed=3)
    lengths = torch.tensor([0, 2, 5], device=DEVICE).int(), torch.tensor([0, 20, 37], device=DEVICE).int()
    table = torch.tensor([[2, 0], [3, 1]], device=DEVICE).int()
    call = (q, k, v, *lengths, 3, 20, 0.0, 0.125, True)
    out, lse, probs, _ = _flash_attn_varlen_forward(*call, block_table=table)
    want, want_lse, _ = flashattn_rocm.flash_attn_varlen_func(
        *call, block_table=table, return_attn_probs=True
    )
    assert out.equal(want)
    assert lse.equal(want_lse)
    assert probs.numel() == 0
