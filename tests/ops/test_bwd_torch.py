"""The backward inside torch: autograd, packed operands, opcheck, fake tensors, torch.compile, refusals."""

import itertools

import pytest
import torch

from flashattn_rocm import (
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from tests.kit.cases import make_qkv, randn
from tests.kit.gradients import assert_gradients

fwd, bwd = torch.ops.flashattn_rocm.fwd, torch.ops.flashattn_rocm.bwd
bwd_into = torch.ops.flashattn_rocm.bwd_into


def leaves(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(tensor.detach().clone().requires_grad_() for tensor in tensors)


def backward_inputs(q, k, v, **options):
    out, lse = fwd(q, k, v, **options)
    return randn(*out.shape, seed=9), q, k, v, out, lse


def layouts() -> dict[str, tuple[torch.Tensor, ...]]:
    """Inputs by what is particular about their strides or sizes."""
    return {
        "contiguous": tuple(make_qkv(2, 9, 9, 4)),
        "transposed": tuple(randn(2, 4, 9, 64, seed=s).transpose(1, 2) for s in range(3)),
        "packed": randn(2, 9, 3, 4, 64, seed=3).unbind(2),
        "broadcast": tuple(randn(1, 9, 1, 64, seed=s).expand(2, 9, 4, 64) for s in range(3)),
        "grouped": tuple(make_qkv(2, 9, 20, 4, 2)),
        "empty": tuple(make_qkv(2, 0, 20, 4, 2)),
    }


def test_autograd_gives_what_the_op_gives():
    q, k, v = leaves(*make_qkv(2, 40, 50, 4, 2))
    dout = randn(2, 40, 4, 64, seed=9)
    got = torch.autograd.grad(flash_attn_func(q, k, v, causal=True), (q, k, v), dout)
    assert_gradients(q, k, v, dout, got, causal=True)


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 2)], ids=str)
def test_any_of_the_inputs_may_need_a_gradient(which):
    qkv = list(make_qkv())
    everything = torch.autograd.grad(
        flash_attn_func(*leaves(*qkv)).sum(), (full := leaves(*qkv)), allow_unused=True
    )
    assert everything == (None, None, None)  # other leaves
    want = torch.autograd.grad(flash_attn_func(*full).sum(), full)
    for i in which:
        qkv[i].requires_grad_()
    got = torch.autograd.grad(flash_attn_func(*qkv).sum(), [qkv[i] for i in which])
    assert all(gradient.equal(want[i]) for gradient, i in zip(got, which, strict=True))


def test_gradient_of_a_sum_is_not_contiguous_and_fits():
    q, k, v = leaves(*make_qkv())
    flash_attn_func(q, k, v).sum().backward()  # dout is one number, expanded
    ones = torch.ones_like(q)
    assert_gradients(q, k, v, ones, (q.grad, k.grad, v.grad))


def test_log_sum_exp_has_no_gradient():
    out, lse, _ = flash_attn_func(*leaves(*make_qkv()), return_attn_probs=True)
    assert out.requires_grad
    assert not lse.requires_grad


def test_nothing_is_saved_without_need():
    q, k, v = leaves(*make_qkv())
    with torch.no_grad():
        assert not flash_attn_func(q, k, v).requires_grad
    assert not flash_attn_func(*make_qkv()).requires_grad


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_second_derivative_is_refused_when_it_is_asked_for(create_graph):
    q, k, v = leaves(*make_qkv())
    (dq,) = torch.autograd.grad(flash_attn_func(q, k, v).sum(), q, create_graph=create_graph)
    if create_graph:
        with pytest.raises(NotImplementedError, match="no second derivative of attention"):
            dq.sum().backward()


def test_changed_inputs_are_noticed():
    q, k, v = leaves(*make_qkv())
    twice = k * 2
    out = flash_attn_func(q, twice, v)
    twice.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def packed_cases():
    pack = {"max_seqlen_q": 30, "max_seqlen_k": 30}
    cu = torch.tensor([0, 30, 30, 45], dtype=torch.int32)
    return {
        "qkv": ((), (2, 40, 3, 4, 64), lambda x: flash_attn_qkvpacked_func(x, causal=True)),
        "kv": ((2, 40, 4, 64), (2, 50, 2, 2, 64), lambda q, x: flash_attn_kvpacked_func(q, x, causal=True)),
        "varlen qkv": ((), (50, 3, 4, 64), lambda x: flash_attn_varlen_qkvpacked_func(x, cu, 30)),
        "varlen kv": (
            (50, 4, 64),
            (50, 2, 2, 64),
            lambda q, x: flash_attn_varlen_kvpacked_func(q, x, cu, cu, *pack.values()),
        ),
    }


@pytest.mark.parametrize("case", list(packed_cases()))
def test_packed_operands_get_a_packed_gradient(case):
    query_shape, shape, attend = packed_cases()[case]
    queries = leaves(randn(*query_shape, seed=1)) if query_shape else ()
    (packed,) = leaves(randn(*shape, seed=2))
    out = attend(*queries, packed)
    covered = out[:45] if "varlen" in case else out
    covered.square().sum().backward()

    parts, again = leaves(*packed.unbind(-3)), leaves(*queries)
    assert packed.grad.is_contiguous()
    dout = torch.zeros_like(out)
    dout[: len(covered)] = 2 * covered.detach()
    operands = (*again, *parts)
    options = {"causal": "varlen" not in case}
    if "varlen" in case:
        cu = torch.tensor([0, 30, 30, 45], dtype=torch.int32)
        options = {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 30, "max_seqlen_k": 30}
    want = torch.autograd.grad(fwd(*operands, **options)[0], operands, dout)
    got = (*(query.grad for query in queries), *packed.grad.unbind(-3))
    assert all(a.equal(b) for a, b in zip(got, want, strict=True))


def test_packed_gradient_is_not_differentiated_again():
    (qkv,) = leaves(randn(1, 20, 3, 2, 32, seed=1))
    (gradient,) = torch.autograd.grad(flash_attn_qkvpacked_func(qkv).sum(), qkv, create_graph=True)
    assert gradient.shape == qkv.shape
    with pytest.raises(NotImplementedError, match="no second derivative of attention"):
        gradient.sum().backward()


@pytest.mark.parametrize("layout", list(layouts()))
def test_opcheck(layout):
    qkv = layouts()[layout]
    torch.library.opcheck(bwd.default, backward_inputs(*qkv), {"causal": True})
    torch.library.opcheck(fwd.default, leaves(*qkv), {"softmax_scale": 0.2, "causal": True})


def test_opcheck_of_results_in_place():
    qkv = make_qkv(2, 9, 20, 4, 2)
    targets = tuple(torch.zeros_like(tensor) for tensor in qkv)
    torch.library.opcheck(bwd_into.default, (*backward_inputs(*qkv), *targets), {"causal": True})


def test_results_in_place_count_as_changes():
    arguments = backward_inputs(*make_qkv())
    targets = [torch.zeros_like(x) for x in arguments[1:4]]
    bwd_into(*arguments, *targets)
    assert [target._version for target in targets] == [1, 1, 1]
    with torch.inference_mode():
        bwd_into(*arguments, *(torch.zeros_like(x) for x in targets))


def test_opcheck_of_packs():
    cu = torch.tensor([0, *itertools.accumulate([5, 0, 7])], dtype=torch.int32)
    options = {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 7, "max_seqlen_k": 7}
    q, k, v = (randn(12, 2, 32, seed=s) for s in range(3))
    torch.library.opcheck(bwd.default, backward_inputs(q, k, v, **options), options)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("function", ["plain", "packed"])
def test_compile_without_graph_break(dynamic, function):
    torch._dynamo.reset()

    def attend(q, k, v):
        if function == "packed":
            return flash_attn_qkvpacked_func(torch.stack([q * 2, k, v], 2), causal=True) + 1
        return flash_attn_func(q * 2, k, v, causal=True) + 1

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for seqlen in (9, 20, 33):
        qkv = make_qkv(2, seqlen, seqlen, 2)
        want, got = leaves(*qkv), leaves(*qkv)
        attend(*want).sum().backward()
        compiled(*got).sum().backward()
        assert all(a.grad.equal(b.grad) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize(
    ("index", "change", "error", "text"),
    [
        (
            0,
            lambda x: x[..., :32],
            ValueError,
            r"dout must have the shape of the forward's out, \[1, 40, 2, 64\]",
        ),
        (0, lambda x: x.float(), TypeError, "q has torch.float16, dout has torch.float32"),
        (
            0,
            lambda x: torch.stack([x] * 2, -1)[..., 0],
            ValueError,
            "dout has stride 2 in its last dimension",
        ),
        (4, lambda x: x[:, 1:], ValueError, r"out must have the shape of .*; it has shape \[1, 39, 2, 64\]"),
        (5, lambda x: x.half(), TypeError, "softmax_lse must have dtype torch.float32; it has torch.float16"),
        (5, lambda x: x[..., 1:], ValueError, r"softmax_lse must have shape \[1, 2, 40\]; it has .*39"),
        (1, lambda x: x.float(), TypeError, "query and key must have the same dtype"),
        (5, lambda x: x.to("meta"), ValueError, "softmax_lse must be on the device of q"),
    ],
)
def test_bad_inputs(index, change, error, text):
    arguments = list(backward_inputs(*make_qkv()))
    arguments[index] = change(arguments[index])
    with pytest.raises(error, match=text):
        bwd(*arguments)


def test_bad_targets():
    arguments = backward_inputs(*make_qkv())
    dq, dk, dv = (torch.empty_like(x) for x in arguments[1:4])
    with pytest.raises(ValueError, match=r"dk must have the shape of k, \[1, 40, 2, 64\]; it has"):
        bwd_into(*arguments, dq, dk[:, 1:], dv)
    with pytest.raises(TypeError, match="value and dv must have the same dtype"):
        bwd_into(*arguments, dq, dk, dv.float())


def test_gradient_of_alibi_slopes_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="alibi_slopes requires grad, which is not served yet"):
        fwd(*leaves(*make_qkv()), alibi_slopes=torch.zeros(2).requires_grad_())


@pytest.mark.parametrize("packed", [False, True])
def test_autocast(packed):
    qkv = randn(1, 20, 3, 2, 32, seed=1)
    (wide,) = leaves(qkv.float())
    with torch.autocast(qkv.device.type, torch.float16):
        out = flash_attn_qkvpacked_func(wide) if packed else flash_attn_func(*wide.unbind(2))
    out.sum().backward()
    (narrow,) = leaves(qkv)
    flash_attn_qkvpacked_func(narrow).sum().backward()
    assert wide.grad.dtype == torch.float32
    assert wide.grad.equal(narrow.grad.float())


def test_gradients_of_options_must_be_possible():
    arguments = backward_inputs(*make_qkv())
    with pytest.raises(ValueError, match="bias_gradient=True needs an attn_bias that is added"):
        bwd(*arguments, bias_gradient=True)
    with pytest.raises(ValueError, match="bias_gradient=True needs an attn_bias that is added"):
        bwd(*arguments, attn_bias=torch.ones(40, 40, dtype=torch.bool), bias_gradient=True)
    with pytest.raises(ValueError, match="sinks_gradient=True needs sinks"):
        bwd(*arguments, sinks_gradient=True)


def test_opcheck_with_gradients_of_options():
    options = {"attn_bias": randn(2, 1, 40, seed=5), "sinks": torch.zeros(2)}
    asked = {"bias_gradient": True, "sinks_gradient": True}
    torch.library.opcheck(bwd.default, backward_inputs(*make_qkv(), **options), options | asked)
    options = {name: value.requires_grad_() for name, value in options.items()}
    torch.library.opcheck(fwd.default, leaves(*make_qkv()), options)
