"""What the forward refuses: the exception, its text, and a device that works afterwards."""

import math

import numpy as np
import pytest
import torch

import flashattn_rocm
from flashattn_rocm import flash_attn_func
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE, expect_usable


@pytest.fixture(autouse=True)
def device_is_usable_afterwards():
    yield
    expect_usable()


def half(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.float16, device=DEVICE)


GOOD = (1, 5, 2, 64)


@pytest.mark.parametrize(
    ("q", "k", "v", "text"),
    [
        (
            half(*GOOD),
            half(*GOOD).bfloat16(),
            half(*GOOD),
            r"query and key .* same dtype: q has torch.float16, k",
        ),
        (
            half(*GOOD),
            half(*GOOD),
            half(*GOOD).float(),
            r"query and value .* same dtype.*v has torch.float32",
        ),
        (*[half(*GOOD).double()] * 3, r"only support fp16 and bf16 data type, and fp32.*torch.float64"),
        (*[half(*GOOD).int()] * 3, r"only support fp16 and bf16 data type.*torch.int32"),
    ],
)
def test_dtypes(q, k, v, text):
    with pytest.raises(TypeError, match=text):
        flash_attn_func(q, k, v)


@pytest.mark.parametrize(
    ("q", "k", "v", "text"),
    [
        ((5, 2, 64), GOOD, GOOD, r"q must have shape \(batch_size, seqlen_q.*3 dimensions: \[5, 2, 64\]"),
        ((), GOOD, GOOD, r"q must have shape .*0 dimensions"),
        (GOOD, (1, 1, 5, 2, 64), GOOD, r"k must have shape \(batch_size, seqlen_k.*5 dimensions"),
        (GOOD, GOOD, (5, 64), r"v must have shape .*2 dimensions"),
        ((2, 5, 2, 64), GOOD, GOOD, r"q and k must have the same batch_size: q has 2 .*, k has 1"),
        (GOOD, GOOD, (2, 5, 2, 64), r"k and v must have the same batch_size: k has 1 .*, v has 2"),
        (GOOD, GOOD, (1, 6, 2, 64), r"k and v must have the same seqlen_k: k has 5 .*, v has 6"),
        (GOOD, GOOD, (1, 5, 1, 64), r"k and v must have the same number of heads: k has 2 .*, v has 1"),
        (GOOD, (1, 5, 2, 32), (1, 5, 2, 32), r"q and k must have the same head_dim: q has 64 .*, k has 32"),
        (*[(1, 5, 2, 0)] * 3, r"head dimension at most 512; q has head_dim 0"),
        (*[(1, 5, 2, 520)] * 3, r"head dimension at most 512; q has head_dim 520 \(shape \[1, 5, 2, 520\]\)"),
        ((1, 5, 5, 64), GOOD, GOOD, r"heads in key/value must divide .* query: q has 5 heads, k has 2"),
        ((1, 5, 2, 64), (1, 5, 4, 64), (1, 5, 4, 64), r"must divide .*: q has 2 heads, k has 4"),
        (GOOD, (1, 5, 0, 64), (1, 5, 0, 64), r"must divide .*: q has 2 heads, k has 0"),
    ],
)
def test_shapes(q, k, v, text):
    with pytest.raises(ValueError, match=text):
        flash_attn_func(half(*q), half(*k), half(*v))


@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_last_stride_in_the_op(name):
    tensors = make_qkv(1, 5)._asdict()
    tensors[name] = torch.stack([tensors[name]] * 2, -1)[..., 0]
    with pytest.raises(ValueError, match=f"contiguous last dimension: {name} has stride 2 .* allowed is 1"):
        torch.ops.flashattn_rocm.fwd(**tensors)


@pytest.mark.parametrize("scale", [math.inf, -math.inf, math.nan, 1e39])
def test_scale_is_finite(scale):
    with pytest.raises(ValueError, match=r"softmax_scale must be a finite float32.*got"):
        flash_attn_func(*make_qkv(), softmax_scale=scale)


def test_devices_must_agree():
    q, k, v = make_qkv()
    with pytest.raises(ValueError, match=r"k must be on the device of q, .*; it is on meta"):
        flash_attn_func(q, k.to("meta"), v)
    with pytest.raises(ValueError, match="must be on the device of q, meta"):
        flash_attn_func(q.to("meta"), k, v)


@pytest.mark.parametrize("dropout_p", [-0.1, 1.0, 1.5, math.nan])
def test_dropout_out_of_range(dropout_p):
    with pytest.raises(ValueError, match=r"dropout_p must be in \[0, 1\); got"):
        flash_attn_func(*make_qkv(), dropout_p=dropout_p)


@pytest.mark.parametrize("window", [None, 3, (1,), (1, 2, 3), "ab", (0.5, 1), {1, 2}])
def test_window_that_is_no_pair_of_int(window):
    with pytest.raises(TypeError, match=r"window_size must be a pair \(left, right\) of int; got"):
        flash_attn_func(*make_qkv(), window_size=window)


def test_arguments_that_change_nothing():
    qkv = make_qkv()
    want = flash_attn_func(*qkv, softmax_scale=0.25)
    unbounded = (torch.tensor(-1), torch.tensor(-1))
    for same in (
        {"window_size": [-1, -1]},
        {"window_size": unbounded},
        {"window_size": (-5, -1)},
        {"deterministic": True},
        {"softmax_scale": np.float32(0.25)},
        {"softmax_scale": torch.tensor(0.25)},
    ):
        assert flash_attn_func(*qkv, **({"softmax_scale": 0.25} | same)).equal(want)


def test_positional_order_is_that_of_flash_attn():
    qkv = make_qkv()
    out, lse, probs = flash_attn_func(*qkv, 0.0, 0.25, True, (-1, -1), 0.0, None, False, True)
    assert out.equal(flash_attn_func(*qkv, softmax_scale=0.25, causal=True))
    assert lse.shape == (1, 2, 40)
    assert probs.shape == (0,)


def test_backend_variable(monkeypatch):
    qkv = make_qkv()
    other, text = ("hip", "cuda only") if DEVICE.type == "cpu" else ("sim", "cpu only")
    monkeypatch.setenv("FLASHATTN_ROCM_BACKEND", other)
    with pytest.raises(ValueError, match=f"FLASHATTN_ROCM_BACKEND={other}, but q is on .*{text}"):
        flash_attn_func(*qkv)
    monkeypatch.setenv("FLASHATTN_ROCM_BACKEND", "gpu")
    with pytest.raises(
        ValueError, match="FLASHATTN_ROCM_BACKEND=gpu is unknown; allowed are auto, hip and sim"
    ):
        flash_attn_func(*qkv)
    monkeypatch.delenv("FLASHATTN_ROCM_BACKEND")


@pytest.mark.skipif(DEVICE.type != "cpu", reason="counts simulated instructions")
def test_instruction_counter_grows_with_work():
    def cost(seqlen: int) -> int:
        before = flashattn_rocm.simulated_instructions()
        flash_attn_func(*make_qkv(1, seqlen, 64, 1))
        return flashattn_rocm.simulated_instructions() - before

    assert 0 < cost(64) < cost(128)
    assert cost(0) == 0


@pytest.mark.skipif(DEVICE.type != "cpu", reason="memory is registered for the simulator only")
def test_memory_of_a_call_is_released():
    q, k, v = (randn(1, 40, 2, 64, seed=s) for s in range(3))
    for _ in range(50):  # a range left registered would make the next registration of q fail
        flash_attn_func(q, k, v)
        flash_attn_func(q[:, 1:], k[:, :3], v[:, :3])
