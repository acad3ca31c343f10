"""Gradients against float64 autograd, by the rule of docs/numerics.md."""

from typing import Any

import torch
from torch import Tensor

from flashattn_rocm.accuracy import rounding_error
from tests.kit.attention import attention
from tests.kit.dropout import kept

Gradients = tuple[Tensor, ...]
MIN_COSINE = {torch.float16: 0.9999, torch.bfloat16: 0.999, torch.float32: 0.9999}


def op_gradients(q: Tensor, k: Tensor, v: Tensor, dout: Tensor, **options: Any) -> Gradients:
    """(dq, dk, dv) by the ops; options are those of flashattn_rocm::fwd."""
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, **options)
    return torch.ops.flashattn_rocm.bwd(dout, q, k, v, out, lse, **options)[:3]


def math_gradients(
    q: Tensor, k: Tensor, v: Tensor, dout: Tensor, precision: torch.dtype = torch.float64, **options: Any
) -> Gradients:
    """(dq, dk, dv) by autograd of the definition, computed in `precision`; float64 in any case at the end."""
    leaves = [x.detach().to(precision).requires_grad_() for x in (q, k, v)]
    out = attention(*leaves, **_of_definition(q, k, options), precision=precision).out
    gradients = torch.autograd.grad(out, leaves, dout.to(precision))
    return tuple(gradient.double() for gradient in gradients)


def assert_gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dout: Tensor,
    got: Gradients | None = None,
    few_keys: bool = False,
    **options: Any,
) -> Gradients:
    """Checks gradients; computes them by the ops unless they are given.

    An error may be twice that of torch's own math in the dtype of q, plus what rounding_error allows: one
    rounding of the result, or 1e-5 of it in float32.

    Args:
        q: as in the op, and so are k, v and dout.
        k: see q.
        v: see q.
        dout: see q.
        got: (dq, dk, dv).
        few_keys: rows may see one key. Then torch's math has no error in dq and dk, which are 0, and what
            remains is that of delta = sum(dout * out), which every flash backward takes of the rounded out.
        options: of the op.
    """
    got = op_gradients(q, k, v, dout, **options) if got is None else got
    want = math_gradients(q, k, v, dout, **options)
    math = math_gradients(q, k, v, dout, q.dtype, **options)
    beside = _delta_rounding(q, k, v, dout, **options) if few_keys else (torch.zeros(()),) * 3
    for name, mine, right, theirs, of, more in zip(
        ("dq", "dk", "dv"), got, want, math, (q, k, v), beside, strict=True
    ):
        assert (mine.shape, mine.dtype) == (of.shape, of.dtype), name
        if not right.numel():
            continue
        assert mine.isfinite().all(), (
            f"{name} has {int((~mine.isfinite()).sum())} entries that are not finite"
        )
        error = ((mine.double() - right).abs() - more).max().item()
        rounding = rounding_error(right.abs().max().item(), q.dtype)
        allowed = 2 * (theirs - right).abs().nan_to_num(0.0).max().item() + rounding
        assert error <= allowed, f"{name}: max abs error {error:.3e} > {allowed:.3e}"
        lengths = mine.double().norm() * right.norm()
        cosine = ((mine.double() * right).sum() / lengths).item() if lengths else 1.0
        if right.abs().max() < 10 * more.max():
            continue
        assert cosine >= MIN_COSINE[q.dtype], f"{name}: cosine {cosine:.6f}"
    return got


def _of_definition(q: Tensor, k: Tensor, options: dict[str, Any]) -> dict[str, Any]:
    """Options of the op as the definition takes them: a mask in place of the seed that it follows from."""
    if "rng_state" not in options:
        return options
    others = {name: value for name, value in options.items() if name != "rng_state"}
    batch, seqlen_q, heads, _ = q.shape
    mask = kept(options["rng_state"], options["dropout_p"], batch, heads, seqlen_q, k.shape[1])
    return others | {"keep": mask}


def _delta_rounding(q: Tensor, k: Tensor, v: Tensor, dout: Tensor, **options: Any) -> Gradients:
    """At most what half a unit in the last place of each entry of out makes of each entry of dq and dk.

    delta is off by err_i = eps / 2 * sum_d |dout_id out_id|, dS_ij by P_ij err_i, so dq by scale err_i
    sum_j P_ij |k_j|, which is attention to |k|, and dk by scale sum_i P_ij err_i |q_i|: a gradient of values.
    """
    out = attention(q, k, v, **_of_definition(q, k, options)).out
    options = {name: value for name, value in options.items() if name not in ("rng_state", "dropout_p")}
    scale = abs(options.get("softmax_scale") or q.shape[-1] ** -0.5)
    error = (dout.double() * out).abs().sum(-1, keepdim=True) * torch.finfo(q.dtype).eps / 2 * scale
    of_q = error * attention(q, k, k.abs(), **options).out
    values = torch.zeros_like(k, dtype=torch.float64).requires_grad_()
    of_k = torch.autograd.grad(attention(q, k, values, **options).out, values, error * q.double().abs())[0]
    return of_q, of_k, torch.zeros(())
