"""Unmodified diffusers models: its "flash" backend through the shim, "native" through the override."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

pytest.importorskip("diffusers")

from diffusers import FluxTransformer2DModel, UNet2DConditionModel, WanTransformer3DModel
from diffusers.models import attention_dispatch

import flashattn_rocm
from tests.kit.calls import CallRecorder
from tests.kit.cases import randn


def unet(head_dim: int) -> tuple[torch.nn.Module, dict]:
    """An SD-like UNet with self-attention and cross-attention of one head dim."""
    model = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(32, 2 * head_dim),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        cross_attention_dim=48,
        attention_head_dim=2,  # of heads, in this class
        norm_num_groups=8,
    )
    inputs = {
        "sample": randn(1, 4, 8, 8, seed=1),
        "timestep": 7,
        "encoder_hidden_states": randn(1, 9, 48, seed=2),
    }
    return model, inputs


def sdxl() -> tuple[torch.nn.Module, dict]:
    """An SDXL-like UNet: several transformer blocks a level, heads of 64, sizes and pooled text embedded."""
    model = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(32, 128),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        transformer_layers_per_block=(1, 2),
        attention_head_dim=(1, 2),  # of heads, in this class
        cross_attention_dim=48,
        norm_num_groups=8,
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        projection_class_embeddings_input_dim=6 * 8 + 16,
    )
    inputs = {
        "sample": randn(1, 4, 8, 8, seed=1),
        "timestep": 7,
        "encoder_hidden_states": randn(1, 77, 48, seed=2),
        "added_cond_kwargs": {
            "text_embeds": randn(1, 16, seed=3),
            "time_ids": torch.tensor([[1024, 1024, 0, 0, 1024, 1024]], dtype=torch.float16),
        },
    }
    return model, inputs


def flux() -> tuple[torch.nn.Module, dict]:
    """A Flux-like transformer: two streams, then one, with rotary embedding and head dim 128."""
    model = FluxTransformer2DModel(
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=128,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(16, 56, 56),
    )
    inputs = {
        "hidden_states": randn(1, 16, 16, seed=1),
        "encoder_hidden_states": randn(1, 7, 32, seed=2),
        "pooled_projections": randn(1, 32, seed=3),
        "timestep": torch.tensor([0.5], dtype=torch.float16),
        "img_ids": torch.randint(0, 4, (16, 3)).half(),
        "txt_ids": torch.zeros(7, 3, dtype=torch.float16),
    }
    return model, inputs


def wan() -> tuple[torch.nn.Module, dict]:
    """A Wan-like video transformer with head dim 64."""
    model = WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=64,
        in_channels=4,
        out_channels=4,
        text_dim=32,
        freq_dim=32,
        ffn_dim=64,
        num_layers=2,
        cross_attn_norm=True,
    )
    inputs = {
        "hidden_states": randn(1, 4, 3, 8, 8, seed=1),
        "encoder_hidden_states": randn(1, 7, 32, seed=2),
        "timestep": torch.tensor([5]),
    }
    return model, inputs


MODELS = [lambda: unet(40), lambda: unet(80), lambda: unet(160), sdxl, flux, wan]


@pytest.fixture
def flash_backend(installed_shim: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """diffusers looks for flash-attn when it is imported, which may be before the shim is there."""
    from flash_attn import flash_attn_func, flash_attn_varlen_func
    from flash_attn.flash_attn_interface import _wrapped_flash_attn_backward, _wrapped_flash_attn_forward

    for name, value in {
        "_CAN_USE_FLASH_ATTN": True,
        "flash_attn_func": flash_attn_func,
        "flash_attn_varlen_func": flash_attn_varlen_func,
        "_wrapped_flash_attn_backward": _wrapped_flash_attn_backward,
        "_wrapped_flash_attn_forward": _wrapped_flash_attn_forward,
    }.items():
        monkeypatch.setattr(attention_dispatch, name, value)


def run(make: Callable[[], tuple[torch.nn.Module, dict]], dtype: torch.dtype = torch.float16) -> torch.Tensor:
    torch.manual_seed(0)
    model, inputs = make()
    inputs = {
        name: x.to(dtype) if isinstance(x, torch.Tensor) and x.is_floating_point() else x
        for name, x in inputs.items()
    }
    with torch.no_grad():
        return model.to(dtype).eval()(**inputs, return_dict=False)[0].float()


@pytest.mark.parametrize("make", MODELS)
def test_native_through_the_override(make: Callable) -> None:
    want = run(make)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        got = run(make)
    assert counts.served >= 2
    assert (got - want).abs().max() < 2e-2 * want.abs().max()


@pytest.mark.parametrize("make", [lambda: unet(80), wan])
def test_float32_through_the_override(make: Callable) -> None:
    want = run(make, torch.float32)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        got = run(make, torch.float32)
    assert counts.served >= 2
    assert (got - want).abs().max() < 1e-5 * want.abs().max()


@pytest.mark.usefixtures("flash_backend")
@pytest.mark.parametrize("make", [flux, wan])
def test_flash_through_the_shim(make: Callable) -> None:
    want = run(make)
    with attention_dispatch.attention_backend("flash"), CallRecorder() as recorder:
        got = run(make)
    assert len(recorder.calls) >= 2
    assert (got - want).abs().max() < 2e-2 * want.abs().max()
