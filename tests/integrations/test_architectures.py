"""Architectures at the head dims that their checkpoints have, by every way into the kernels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

pytest.importorskip("transformers")

from transformers import PreTrainedModel

import flashattn_rocm
from flashattn_rocm.integrations import transformers as adapter
from tests.integrations.test_transformers import LOGIT_TOLERANCE, run
from tests.integrations.tiny_models import (
    PAD,
    images,
    padding,
    random_tokens,
    tiny_gemma2,
    tiny_gemma3,
    tiny_qwen2_vl_vision,
    tiny_qwen3_vl_vision,
)
from tests.kit.calls import CallRecorder

# The package's own name in transformers, flash-attn's through the shim, torch's through the override.
WAYS = pytest.mark.parametrize("way", ["gfx906", "flash_attention_2", "sdpa"])


@pytest.fixture(autouse=True)
def served(way: str, request: pytest.FixtureRequest) -> Iterator[None]:
    """Without grad, and with nothing that torch computes in our place."""
    if way == "gfx906":
        adapter.register("gfx906")
    if way == "flash_attention_2":
        request.getfixturevalue("flash_attention_2")
    with torch.no_grad(), flashattn_rocm.sdpa(fallback=False):
        yield


def compare(
    model: PreTrainedModel, way: str, head_dim: int, kept: torch.Tensor | None = None, **inputs: object
) -> None:
    """Against eager, on the tokens that are kept; every call is of the head dim: nothing pads before."""
    with CallRecorder() as recorder:
        got = run(model, way, **inputs)
    assert {q.shape[-1] for (q, *_), _ in recorder.calls} == {head_dim}
    want = run(model, "eager", **inputs)
    rows = slice(None) if kept is None else kept.bool()
    assert got.isfinite().all()
    assert (got - want)[rows].abs().max() < LOGIT_TOLERANCE


@pytest.mark.parametrize("way", ["gfx906", "flash_attention_2"])  # torch's function has no soft cap
def test_gemma2_softcap_window_256(way: str) -> None:
    mask = padding([30, 11], 30, "left")
    ids = random_tokens(2, 30).where(mask.bool(), PAD)
    compare(tiny_gemma2(head_dim=256), way, 256, mask, input_ids=ids, attention_mask=mask)


@WAYS
def test_gemma3_window_256(way: str) -> None:
    mask = padding([30, 11], 30, "left")
    ids = random_tokens(2, 30).where(mask.bool(), PAD)
    compare(tiny_gemma3(), way, 256, mask, input_ids=ids, attention_mask=mask)


@WAYS
@pytest.mark.parametrize("sizes", [[(4, 6)], [(8, 10), (2, 2), (4, 6)]], ids=["one image", "three images"])
def test_qwen2_vl_vision_80(way: str, sizes: list[tuple[int, int]]) -> None:
    compare(tiny_qwen2_vl_vision(), way, 80, **images(*sizes))


@WAYS
@pytest.mark.parametrize("sizes", [[(4, 6)], [(8, 10), (2, 2), (4, 6)]], ids=["one image", "three images"])
def test_qwen3_vl_vision_72(way: str, sizes: list[tuple[int, int]]) -> None:
    compare(tiny_qwen3_vl_vision(), way, 72, **images(*sizes))
