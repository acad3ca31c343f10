"""Unmodified transformers models: "flash_attention_2" through the shim, "sdpa" through the override."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

pytest.importorskip("transformers")

from transformers import PreTrainedModel

import flashattn_rocm
from tests.integrations.test_transformers import assert_same_on, run
from tests.integrations.tiny_models import (
    PAD,
    padding,
    random_tokens,
    tiny_bert,
    tiny_gemma2,
    tiny_llama,
    tiny_mistral,
    tiny_t5,
)
from tests.kit.calls import CallRecorder


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def compare(model: PreTrainedModel, name: str, kept: torch.Tensor, **inputs: object) -> None:
    with CallRecorder() as recorder:
        got = run(model, name, **inputs)
    assert recorder.calls
    assert_same_on(kept, got, run(model, "eager", **inputs))


@pytest.mark.usefixtures("flash_attention_2")
@pytest.mark.parametrize("make", [tiny_llama, tiny_gemma2, lambda: tiny_mistral(sliding_window=8)])
def test_decoders_by_flash_attention_2(make: object) -> None:
    mask = padding([20, 13], 20, "left")
    ids = random_tokens(2, 20).where(mask.bool(), PAD)
    compare(make(), "flash_attention_2", mask, input_ids=ids, attention_mask=mask)
    compare(make(), "flash_attention_2", torch.ones_like(ids), input_ids=random_tokens(2, 20))


@pytest.mark.usefixtures("flash_attention_2")
def test_encoder_by_flash_attention_2() -> None:
    mask = padding([17, 4], 17, "right")
    ids = random_tokens(2, 17).where(mask.bool(), PAD)
    compare(tiny_bert(), "flash_attention_2", mask, input_ids=ids, attention_mask=mask)


@pytest.mark.usefixtures("flash_attention_2")
def test_packed_sequences_by_flash_attention_2() -> None:
    positions = torch.tensor([[*range(5), *range(7)]])
    ids = random_tokens(1, 12)
    inputs = {"input_ids": ids, "position_ids": positions, "use_cache": False}
    compare(tiny_llama(), "flash_attention_2", torch.ones_like(ids), **inputs)


@pytest.mark.usefixtures("flash_attention_2")
def test_generation_by_flash_attention_2() -> None:
    model, mask = tiny_llama(), padding([9, 5], 9, "left")
    ids = random_tokens(2, 9).where(mask.bool(), PAD)
    tokens = {}
    for name in ("flash_attention_2", "eager"):
        model.set_attn_implementation(name)
        tokens[name] = model.generate(ids, attention_mask=mask, max_new_tokens=5, do_sample=False)
    assert torch.equal(tokens["flash_attention_2"], tokens["eager"])


@pytest.mark.parametrize("make", [tiny_llama, lambda: tiny_mistral(sliding_window=8)])
@pytest.mark.parametrize("side", ["left", "right"])
def test_decoders_by_sdpa(make: object, side: str) -> None:
    mask = padding([20, 13], 20, side)
    ids = random_tokens(2, 20).where(mask.bool(), PAD)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        compare(make(), "sdpa", mask, input_ids=ids, attention_mask=mask)
    assert counts.served == 2


def test_encoders_by_sdpa() -> None:
    mask = padding([13, 4], 13, "right")
    ids = random_tokens(2, 13).where(mask.bool(), PAD)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        compare(tiny_bert(), "sdpa", torch.ones_like(mask), input_ids=ids, attention_mask=mask)
        compare(
            tiny_t5(),
            "sdpa",
            torch.ones(2, 5),
            input_ids=ids,
            attention_mask=mask,
            decoder_input_ids=random_tokens(2, 5, seed=2),
        )
    assert counts.served == 2 + 2 + 4  # BERT's layers, T5's encoder, T5's decoder with cross-attention


@pytest.mark.parametrize("cache", [None, "static"])
def test_generation_by_sdpa(cache: str | None) -> None:
    model, mask = tiny_llama(), padding([9, 5], 9, "left")
    ids = random_tokens(2, 9).where(mask.bool(), PAD)
    options = {"cache_implementation": cache, "disable_compile": True} if cache else {}

    def generate(name: str) -> torch.Tensor:
        model.set_attn_implementation(name)
        return model.generate(ids, attention_mask=mask, max_new_tokens=5, do_sample=False, **options)

    want = generate("eager")
    with flashattn_rocm.sdpa(fallback=False):
        assert torch.equal(generate("sdpa"), want)
