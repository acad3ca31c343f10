"""The attention function for ComfyUI against torch, on the layouts that ComfyUI passes."""

import sys
from types import SimpleNamespace

import pytest
import torch

from flashattn_rocm.integrations import comfyui
from tests.kit.calls import CallRecorder
from tests.kit.cases import randn


def by_torch(q, k, v, heads, mask=None, **options):
    """(batch, seqlen, heads * head_dim) in and out."""
    split = (t.unflatten(-1, (-1, q.shape[-1] // heads)).transpose(1, 2) for t in (q, k, v))
    out = torch.nn.functional.scaled_dot_product_attention(*split, attn_mask=mask, enable_gqa=True, **options)
    return out.transpose(1, 2).flatten(2)


@pytest.mark.parametrize("head_dim", [40, 64, 80, 160])  # SD 1.5 and SDXL
def test_unet_layouts(head_dim):
    q, k, v = (
        randn(2, 20, 2 * head_dim, seed=1),
        randn(2, 7, 2 * head_dim, seed=2),
        randn(2, 7, 2 * head_dim, seed=3),
    )
    want = by_torch(q, k, v, 2)
    assert (comfyui.attention(q, k, v, 2) - want).abs().max() < 3e-3
    split = [t.unflatten(-1, (2, head_dim)).transpose(1, 2) for t in (q, k, v)]
    got = comfyui.attention(*split, 2, skip_reshape=True)
    assert (got - want).abs().max() < 3e-3
    got = comfyui.attention(*split, 2, skip_reshape=True, skip_output_reshape=True)
    assert (got.transpose(1, 2).flatten(2) - want).abs().max() < 3e-3


@pytest.mark.parametrize("shape", [(9, 7), (2, 9, 7), (2, 1, 9, 7), (2, 4, 9, 7), (2, 1, 1, 7)])
@pytest.mark.parametrize("kind", [torch.bool, torch.float16, torch.float32, torch.bfloat16])
def test_masks(shape, kind):
    q, k, v = randn(2, 9, 64, seed=1), randn(2, 7, 64, seed=2), randn(2, 7, 64, seed=3)
    mask = randn(*shape, seed=4) > -1 if kind is torch.bool else randn(*shape, seed=4).to(kind)
    whole = mask.unsqueeze(1) if mask.dim() == 3 else mask
    want = by_torch(q, k, v, 4, whole if kind is torch.bool else whole.half())
    got = comfyui.attention(q, k, v, 4, mask=mask, attn_precision=torch.float32)
    assert (got - want).abs().max() < 3e-3


def test_scale_and_groups():
    q, k, v = randn(1, 9, 64, seed=1), randn(1, 9, 32, seed=2), randn(1, 9, 32, seed=3)
    got = comfyui.attention(q, k, v, 4, scale=0.5, enable_gqa=True, transformer_options={"x": 1})
    assert (got - by_torch(q, k, v, 4, scale=0.5)).abs().max() < 3e-3


def test_strided_inputs_are_views():
    packed = randn(2, 9, 3 * 64, seed=5)
    with CallRecorder() as recorder:
        comfyui.attention(*packed.chunk(3, -1), 4)
    ((args, _),) = recorder.calls
    assert {t.untyped_storage().data_ptr() for t in args[:3]} == {packed.untyped_storage().data_ptr()}


def test_override_ignores_what_it_replaces():
    q = randn(1, 9, 64, seed=1)
    got = comfyui.override(lambda *_, **__: pytest.fail("called"), q, q, q, heads=4)
    assert torch.equal(got, comfyui.attention(q, q, q, 4))


def test_register(monkeypatch):
    monkeypatch.delitem(sys.modules, "comfy.ldm.modules.attention", raising=False)
    with pytest.raises(RuntimeError, match="register_attention_function is not there"):
        comfyui.register()
    functions = {}
    module = SimpleNamespace(register_attention_function=functions.__setitem__)
    monkeypatch.setitem(sys.modules, "comfy.ldm.modules.attention", module)
    assert comfyui.register("mi50") == "mi50"
    assert functions == {"mi50": comfyui.attention}
