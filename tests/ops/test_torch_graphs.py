"""What torch.compile, torch.export, opcheck and fake tensors make of every kind of call."""

import io

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import flashattn_rocm
from flashattn_rocm import flash_attn_func, flash_attn_varlen_func
from tests.kit.cases import make_qkv, randn
from tests.kit.device import DEVICE

fwd = torch.ops.flashattn_rocm.fwd


def cu_seqlens(*lengths: int) -> torch.Tensor:
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32, device=DEVICE)


def packed() -> dict[str, torch.Tensor | int]:
    cu = cu_seqlens(4, 0, 6)
    return {"cu_seqlens_q": cu, "cu_seqlens_k": cu, "max_seqlen_q": 6, "max_seqlen_k": 6}


def calls() -> dict[str, tuple]:
    """(q, k, v) and keyword arguments of the op."""
    dense = tuple(make_qkv(2, 9, 20, 4, 2, head_dim=32))
    flat = tuple(randn(10, 2, 32, seed=s) for s in range(3))
    return {
        "window": (dense, {"window_left": 3, "window_right": 2}),
        "softcap": (dense, {"softcap": 5.0, "softmax_scale": 0.3}),
        "alibi": (dense, {"alibi_slopes": randn(2, 4, seed=1).float(), "causal": True}),
        "bias": (dense, {"attn_bias": randn(1, 4, 1, 20, seed=2)}),
        "mask": (dense, {"attn_bias": randn(9, 20, seed=3) > 0}),
        "sinks": (dense, {"sinks": randn(4, seed=4), "top_left": True, "causal": True}),
        "seqused": (dense, {"seqused_k": torch.tensor([3, 20], dtype=torch.int32, device=DEVICE)}),
        "head_dim_v": ((*dense[:2], randn(2, 20, 2, 16, seed=5)), {}),
        "packed": (flat, packed()),
        "packed, head_dim_v": ((*flat[:2], randn(10, 2, 48, seed=6)), packed()),
        "bf16": (tuple(x.bfloat16() for x in dense), {}),
    }


@pytest.mark.parametrize("name", list(calls()))
def test_opcheck(name):
    tensors, keywords = calls()[name]
    torch.library.opcheck(fwd.default, tensors, keywords)


@pytest.mark.parametrize("name", list(calls()))
def test_fake_results_are_those_of_real_ones(name):
    tensors, keywords = calls()[name]
    real = fwd(*tensors, **keywords)
    with FakeTensorMode() as mode:

        def fake(x):
            return mode.from_tensor(x) if isinstance(x, torch.Tensor) else x

        results = fwd(*map(fake, tensors), **{key: fake(value) for key, value in keywords.items()})
    for one, other in zip(real, results, strict=True):
        assert (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())


def dense_calls() -> dict[str, dict]:
    return {
        "causal": {"causal": True},
        "window": {"window_size": (4, 0)},
        "softcap": {"softcap": 5.0, "softmax_scale": 0.3},
        "alibi": {"alibi_slopes": randn(4, seed=1).float()},
        "statistics": {"return_attn_probs": True},
        "dropout": {"dropout_p": 0.3},
    }


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", list(dense_calls()))
def test_compiled_without_a_graph_break(name, dynamic):
    torch._dynamo.reset()
    options = dense_calls()[name]

    def attend(q, k, v):
        result = flash_attn_func(q * 2, k, v, **options)
        return result if isinstance(result, tuple) else (result + 1,)

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    for seqlen in (9, 20):
        qkv = make_qkv(2, seqlen, seqlen + 3, 4, 2, head_dim=32)
        torch.manual_seed(1)
        want = attend(*qkv)
        torch.manual_seed(1)
        assert all(one.equal(other) for one, other in zip(compiled(*qkv), want, strict=True))


@pytest.mark.parametrize("form", ["func", "kvpacked_func", "qkvpacked_func"])
def test_packed_sequences_compiled_without_a_graph_break(form):
    torch._dynamo.reset()
    qkv = randn(10, 3, 2, 32, seed=7)
    cu = cu_seqlens(4, 0, 6)
    function = getattr(flashattn_rocm, f"flash_attn_varlen_{form}")
    tensors = {"func": qkv.unbind(1), "kvpacked_func": (qkv[:, 0], qkv[:, 1:]), "qkvpacked_func": (qkv,)}
    lengths = (cu, 6) if form == "qkvpacked_func" else (cu, cu, 6, 6)

    def attend(*tensors: torch.Tensor) -> torch.Tensor:
        return function(*tensors, *lengths, causal=True)

    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    assert compiled(*tensors[form]).equal(attend(*tensors[form]))


class Attention(torch.nn.Module):
    """Self-attention of two heads over packed projections."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(64, 192, dtype=torch.float16, device=DEVICE)
        self.attend = flash_attn_func

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x).unflatten(-1, (3, 2, 32)).unbind(2)
        return self.attend(q, k, v, causal=True).flatten(2)


def test_export_of_any_length_and_back_from_a_file():
    module = Attention().requires_grad_(False)
    seqlen = torch.export.Dim("seqlen", min=2, max=4096)
    example = (randn(2, 9, 64, seed=1),)
    exported = torch.export.export(module, example, dynamic_shapes=({1: seqlen},))
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for length in (9, 33):
        x = randn(2, length, 64, seed=length)
        assert loaded(x).equal(module(x))
    assert any("flashattn_rocm.fwd" in str(node.target) for node in exported.graph.nodes)


def test_export_of_packed_sequences():
    class Packed(torch.nn.Module):
        def forward(self, q, k, v, cu):
            return flash_attn_varlen_func(q, k, v, cu, cu, 6, 6, causal=True)

    arguments = (*(randn(10, 2, 32, seed=s) for s in range(3)), cu_seqlens(4, 0, 6))
    exported = torch.export.export(Packed(), arguments)
    assert exported.module()(*arguments).equal(Packed()(*arguments))


def test_inference_mode_and_views_of_it():
    qkv = make_qkv()
    with torch.inference_mode():
        out = flash_attn_func(*qkv)
        assert out.is_inference()
        assert flash_attn_func(out, out, out).shape == out.shape
    assert out.equal(flash_attn_func(*qkv))
