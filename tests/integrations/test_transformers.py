"""Models with attention on the card against the same models on transformers' own eager attention."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

pytest.importorskip("transformers")

from transformers import AttentionInterface, PreTrainedModel, StaticCache, masking_utils

import flashattn_rocm
from flashattn_rocm.integrations import transformers as adapter
from flashattn_rocm.integrations import transformers_masks
from tests.integrations.tiny_models import (
    PAD,
    padding,
    random_tokens,
    tiny_bert,
    tiny_gemma2,
    tiny_gpt_oss,
    tiny_llama,
    tiny_mistral,
    tiny_t5,
)
from tests.kit.calls import CallRecorder

# fp16 logits of magnitude 8 to 16 are spaced 1/128; two layers of other rounding move them by a few steps.
LOGIT_TOLERANCE = 0.08


@pytest.fixture(autouse=True)
def registered_without_grad() -> Iterator[None]:
    adapter.register("gfx906")
    with torch.no_grad():
        yield


def run(model: PreTrainedModel, name: str, **inputs: object) -> torch.Tensor:
    """Logits or hidden states, float32, of ``model`` with the attention implementation ``name``."""
    model.set_attn_implementation(name)
    out = model(**inputs)
    return (out.logits if hasattr(out, "logits") else out.last_hidden_state).float()


def assert_same_on(kept: torch.Tensor, got: torch.Tensor, want: torch.Tensor) -> None:
    """Compares (batch, length, …) outputs on the tokens that the mask keeps; all others must be finite."""
    assert got.isfinite().all()
    assert (got - want)[kept.bool()].abs().max() < LOGIT_TOLERANCE


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (1, 33), (2, 70)])
def test_llama_dense(batch: int, length: int) -> None:
    model, ids = tiny_llama(), random_tokens(batch, length)
    got, want = run(model, "gfx906", input_ids=ids), run(model, "eager", input_ids=ids)
    assert_same_on(torch.ones_like(ids), got, want)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("lengths", [[20, 13, 13, 1], [7, 20, 7, 19]])
def test_llama_padding(side: str, lengths: list[int]) -> None:
    model, mask = tiny_llama(), padding(lengths, 20, side)
    ids = random_tokens(4, 20).where(mask.bool(), PAD)
    got = run(model, "gfx906", input_ids=ids, attention_mask=mask)
    assert_same_on(mask, got, run(model, "eager", input_ids=ids, attention_mask=mask))


@pytest.mark.parametrize("side", ["left", "right"])
def test_bert_padding_matches_on_every_token(side: str) -> None:
    model, mask = tiny_bert(), padding([17, 4, 4, 11], 17, side)
    ids = random_tokens(4, 17).where(mask.bool(), PAD)
    got = run(model, "gfx906", input_ids=ids, attention_mask=mask)
    want = run(model, "eager", input_ids=ids, attention_mask=mask)
    assert_same_on(torch.ones_like(mask), got, want)


def test_causal_padding_tokens_attend_to_nothing() -> None:
    model = tiny_llama()
    q, k, v = (torch.randn(2, heads, 6, 32, dtype=torch.float16) for heads in (4, 2, 2))
    mask = padding([4, 6], 6, "left").bool()
    out, weights = adapter.attention_forward(model.model.layers[0].self_attn, q, k, v, mask)
    assert weights is None
    assert out.shape == (2, 6, 4, 32)
    assert (out[0, :2] == 0).all()
    assert (out[0, 2:] != 0).any(-1).all()


@pytest.mark.parametrize("causal", [False, True])
def test_a_row_without_keys_gives_zeros(causal: bool) -> None:
    module = tiny_llama().model.layers[0].self_attn
    q, k, v = (torch.randn(2, heads, 6, 32, dtype=torch.float16) for heads in (4, 2, 2))
    mask = padding([0, 6], 6, "right").bool()
    out, _ = adapter.attention_forward(module, q, k, v, mask, is_causal=causal)
    assert (out[0] == 0).all()
    assert (out[1] != 0).any(-1).all()


def test_passes_the_models_scaling_on() -> None:
    module = tiny_llama().model.layers[0].self_attn
    q, k, v = (torch.randn(1, heads, 6, 32, dtype=torch.float16) for heads in (4, 2, 2))
    got, _ = adapter.attention_forward(module, q, k, v, None, scaling=0.5)
    want = torch.nn.functional.scaled_dot_product_attention(
        q, k, v, is_causal=True, scale=0.5, enable_gqa=True
    ).transpose(1, 2)
    assert (got.float() - want.float()).abs().max() < 2e-3


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generate_with_left_padding(cache: str) -> None:
    model, mask = tiny_llama(), padding([9, 5], 9, "left")
    ids = random_tokens(2, 9).where(mask.bool(), PAD)
    tokens = {}
    for name in ("gfx906", "eager"):
        model.set_attn_implementation(name)
        kwargs = {"cache_implementation": "static", "disable_compile": True} if cache == "static" else {}
        tokens[name] = model.generate(ids, attention_mask=mask, max_new_tokens=6, do_sample=False, **kwargs)
    assert tokens["gfx906"].shape == (2, 15)
    assert torch.equal(tokens["gfx906"], tokens["eager"])


def test_static_cache_without_mask_ignores_the_unwritten_part() -> None:
    model, ids = tiny_llama(), random_tokens(1, 12)
    want = run(model, "eager", input_ids=ids)[:, 5:]
    model.set_attn_implementation("gfx906")
    cache = StaticCache(config=model.config, max_cache_len=40)
    model(input_ids=ids[:, :5], cache=cache)
    # Unwritten cache slots may hold anything; NaN shows any read of them.
    for layer in cache.layers:
        layer.keys[:, :, 5:] = torch.nan
        layer.values[:, :, 5:] = torch.nan
    # Seven queries at offset 5: bottom-right alignment inside a longer cache.
    got = model(input_ids=ids[:, 5:], cache=cache).logits.float()
    assert (got - want).abs().max() < LOGIT_TOLERANCE


@pytest.mark.parametrize("length", [16, 40])
def test_sliding_window(length: int) -> None:
    model, ids = tiny_mistral(sliding_window=16), random_tokens(2, length)
    got, want = run(model, "gfx906", input_ids=ids), run(model, "eager", input_ids=ids)
    assert_same_on(torch.ones_like(ids), got, want)


@pytest.mark.parametrize("padded", [False, True])
def test_sliding_window_with_a_cache(padded: bool) -> None:
    model, ids = tiny_mistral(sliding_window=8), random_tokens(2, 30)
    mask = padding([30, 25] if padded else [30, 30], 30, "left")
    want = run(model, "eager", input_ids=ids, attention_mask=mask)
    model.set_attn_implementation("gfx906")
    past, parts = None, []
    for begin, end in ((0, 12), (12, 13), (13, 21), (21, 30)):
        out = model(input_ids=ids[:, begin:end], attention_mask=mask[:, :end], cache=past, use_cache=True)
        past = out.past_key_values
        parts.append(out.logits.float())
    # Position ids of the first rows differ by the padding, as in every chunked prefill.
    if not padded:
        assert_same_on(mask, torch.cat(parts, 1), want)
    assert torch.cat(parts, 1).isfinite().all()


def test_gemma2_with_soft_caps_and_windows() -> None:
    model, mask = tiny_gemma2(), padding([30, 11], 30, "left")
    ids = random_tokens(2, 30).where(mask.bool(), PAD)
    got = run(model, "gfx906", input_ids=ids, attention_mask=mask)
    assert_same_on(mask, got, run(model, "eager", input_ids=ids, attention_mask=mask))


def test_gpt_oss_with_sinks() -> None:
    model, ids = tiny_gpt_oss(), random_tokens(2, 30)
    got, want = run(model, "gfx906", input_ids=ids), run(model, "eager", input_ids=ids)
    assert_same_on(torch.ones_like(ids), got, want)


def test_packed_sequences() -> None:
    model, ids = tiny_llama(), random_tokens(2, 12)
    positions = torch.tensor([[*range(5), *range(7)], [*range(2), *range(10)]])
    inputs = {"input_ids": ids, "position_ids": positions, "use_cache": False}
    got, want = run(model, "gfx906", **inputs), run(model, "eager", **inputs)
    assert_same_on(torch.ones_like(ids), got, want)
    alone = run(model, "gfx906", input_ids=ids[1:, 2:])
    assert (got[1:, 2:] - alone).abs().max() < LOGIT_TOLERANCE


def test_sequences_that_the_caller_packed() -> None:
    model, ids = tiny_llama(), random_tokens(1, 12)
    lengths = torch.tensor([0, 5, 12], dtype=torch.int32)
    inputs = {"input_ids": ids, "position_ids": torch.tensor([[*range(5), *range(7)]]), "use_cache": False}
    got = run(
        model,
        "gfx906",
        **inputs,
        cu_seq_lens_q=lengths,
        cu_seq_lens_k=lengths,
        max_length_q=7,
        max_length_k=7,
    )
    assert_same_on(torch.ones_like(ids), got, run(model, "eager", **inputs))


@pytest.mark.parametrize("kind", [torch.bool, torch.float16])
def test_a_mask_of_the_callers_own(kind: torch.dtype) -> None:
    model, ids = tiny_llama(), random_tokens(2, 9)
    kept = torch.rand(2, 1, 9, 9, generator=torch.Generator().manual_seed(3)) < 0.6
    kept |= torch.eye(9, dtype=torch.bool)
    added = torch.zeros(kept.shape, dtype=torch.float16).masked_fill(~kept, torch.finfo(torch.float16).min)
    got = run(model, "gfx906", input_ids=ids, attention_mask=kept if kind is torch.bool else added)
    assert_same_on(torch.ones_like(ids), got, run(model, "eager", input_ids=ids, attention_mask=added))


def test_t5_with_a_position_bias() -> None:
    model, mask = tiny_t5(), padding([13, 6], 13, "right")
    ids = random_tokens(2, 13).where(mask.bool(), PAD)
    inputs = {"input_ids": ids, "attention_mask": mask, "decoder_input_ids": random_tokens(2, 5, seed=2)}
    got, want = run(model, "gfx906", **inputs), run(model, "eager", **inputs)
    assert_same_on(torch.ones(2, 5), got, want)


@pytest.mark.parametrize(
    ("pattern", "arguments", "want"),
    [
        (masking_utils.causal_mask_function, {}, None),
        (masking_utils.sliding_window_causal_mask_function(3), {}, None),
        (masking_utils.bidirectional_mask_function, {}, None),
        (masking_utils.causal_mask_function, {"attention_mask": torch.tensor([[True] * 8] * 2)}, None),
        (
            masking_utils.causal_mask_function,
            {"attention_mask": torch.tensor([[True] * 7 + [False]] * 2)},
            (2, 8),
        ),
        (masking_utils.causal_mask_function, {"kv_length": 20}, (1, 8)),
        (masking_utils.causal_mask_function, {"kv_length": 20, "q_offset": torch.tensor(5)}, (1, 13)),
        (
            masking_utils.causal_mask_function,
            {"kv_length": 20, "q_length": 1, "q_offset": torch.tensor(5)},
            (2, 1, 1, 20),
        ),
        (masking_utils.chunked_causal_mask_function(4, torch.zeros(2, dtype=torch.int)), {}, (2, 1, 8, 8)),
        (masking_utils.sliding_window_bidirectional_mask_function(3), {}, (2, 1, 8, 8)),
    ],
)
def test_masks_are_no_larger_than_needed(pattern: object, arguments: dict, want: tuple | None) -> None:
    sizes = {"batch_size": 2, "q_length": 8, "kv_length": 8, "mask_function": pattern}
    mask = transformers_masks.attention_mask(**(sizes | arguments))
    assert (None if mask is None else tuple(mask.shape)) == want


def test_inputs_are_read_as_views() -> None:
    module = tiny_llama().model.layers[0].self_attn
    q, k, v = (torch.randn(3, heads, 6, 32, dtype=torch.float16) for heads in (4, 2, 2))
    with CallRecorder() as recorder:
        adapter.attention_forward(module, q, k, v, padding([6, 6, 2], 6, "right").bool())
    ((args, keywords),) = recorder.calls
    assert [t.data_ptr() for t in args[:3]] == [t.data_ptr() for t in (q, k, v)]
    assert keywords["attn_bias"].shape == (3, 1, 1, 6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"output_attentions": True}, "output_attentions"),
        ({"block_table": torch.zeros(1, 1)}, "block_table: a paged cache"),
        ({"indices": torch.zeros(1, 1)}, "indices: sparse attention"),
        (
            {"attention_mask": torch.tensor([0, 6]), "position_bias": torch.zeros(1, 4, 6, 6)},
            "position_bias is not served with packed sequences",
        ),
    ],
)
def test_refuses_by_name(arguments: dict[str, object], message: str) -> None:
    module = tiny_llama().model.layers[0].self_attn
    q, k, v = (torch.randn(1, heads, 6, 32, dtype=torch.float16) for heads in (4, 2, 2))
    with pytest.raises(NotImplementedError, match=message):
        adapter.attention_forward(module, q, k, v, **({"attention_mask": None} | arguments))


def test_queries_past_the_keys_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="2 positions past the 8 keys"):
        transformers_masks.attention_mask(1, 4, 8, q_offset=6)


@pytest.mark.parametrize("name", ["gfx906", "sdpa"])
def test_float32_models(name: str) -> None:
    model, ids = tiny_llama().float(), random_tokens(2, 40)
    want = run(model, "eager", input_ids=ids)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        got = run(model, name, input_ids=ids)
    assert counts.served == (2 if name == "sdpa" else 0)
    assert (got - want).abs().max() < 1e-4  # of logits up to 16; 0.01 in fp16


def test_refuses_float64_models() -> None:
    model = tiny_llama().double()
    model.set_attn_implementation("gfx906")
    with pytest.raises(TypeError, match="float64"):
        model(input_ids=random_tokens(1, 4))


@pytest.mark.parametrize("name", ["my_flash", "eager", "sdpa", "a|b", ""])
def test_register_refuses_names(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        adapter.register(name)


def test_register_takes_other_names_and_repeats() -> None:
    assert adapter.register("mi50") == "mi50"
    assert adapter.register("mi50") == "mi50"
    assert AttentionInterface()["mi50"] is adapter.attention_forward
