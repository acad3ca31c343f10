"""Models with attention on the card against the same models on transformers' own eager attention."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

pytest.importorskip("transformers")

from transformers import AttentionInterface, PreTrainedModel, StaticCache

from flashattn_rocm.integrations import transformers as adapter
from tests.integrations.tiny_models import PAD, padding, random_tokens, tiny_bert, tiny_llama

# fp16 logits of magnitude 8 to 16 are spaced 1/128; two layers of other rounding move them by a few steps.
LOGIT_TOLERANCE = 0.05


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


def test_inputs_are_read_as_views(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []

    def record(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **_: object) -> torch.Tensor:
        seen.extend((q, k, v))
        return torch.zeros_like(q)

    monkeypatch.setattr(adapter, "flash_attn_func", record)
    module = tiny_llama().model.layers[0].self_attn
    q, k, v = (torch.randn(3, heads, 6, 32, dtype=torch.float16) for heads in (4, 2, 2))
    adapter.attention_forward(module, q, k, v, padding([6, 6, 2], 6, "right").bool())
    assert [tuple(t.shape) for t in seen[:2]] == [(2, 6, 4, 32), (2, 6, 2, 32)]
    assert [tuple(t.shape) for t in seen[3:5]] == [(1, 2, 4, 32), (1, 2, 2, 32)]
    storages = [t.untyped_storage().data_ptr() for t in seen]
    assert storages == [t.untyped_storage().data_ptr() for t in (q, k, v)] * 2


def test_sliding_window_as_long_as_the_sequence_is_served() -> None:
    from transformers import MistralConfig, MistralForCausalLM

    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=101,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        sliding_window=16,
        initializer_range=0.2,
    )
    model = MistralForCausalLM(config).to(torch.float16).eval()
    ids = random_tokens(1, 17)
    got, want = run(model, "gfx906", input_ids=ids[:, :16]), run(model, "eager", input_ids=ids[:, :16])
    assert_same_on(torch.ones_like(ids[:, :16]), got, want)
    model.set_attn_implementation("gfx906")
    past = model(input_ids=ids[:, :5], use_cache=True).past_key_values
    continued = model(input_ids=ids[:, 5:16], cache=past).logits.float()
    assert_same_on(torch.ones_like(ids[:, 5:16]), continued, want[:, 5:])
    with pytest.raises(NotImplementedError, match=r"mask_function.*sliding window"):
        run(model, "gfx906", input_ids=ids)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dropout": 0.1}, "dropout"),
        ({"softcap": 30.0}, "softcap"),
        ({"s_aux": torch.zeros(4)}, "s_aux.*sinks"),
        ({"position_bias": torch.zeros(1, 4, 6, 6)}, "position_bias"),
        ({"sliding_window": 5}, "sliding_window.*5 for 6 keys"),
        ({"output_attentions": True}, "output_attentions"),
        ({"cu_seq_lens_q": torch.tensor([0, 3, 6])}, "cu_seq_lens_q.*packed"),
        ({"attention_mask": torch.zeros(1, 1, 6, 6, dtype=torch.float16)}, r"2-D bool.*\(1, 1, 6, 6\)"),
        ({"attention_mask": torch.tensor([[1, 1, 0, 1, 1, 1]]).bool()}, "row 0 keeps 5 keys between 0 and 6"),
    ],
)
def test_refuses_by_name(arguments: dict[str, object], message: str) -> None:
    module = tiny_llama().model.layers[0].self_attn
    q, k, v = (torch.randn(1, heads, 6, 32, dtype=torch.float16) for heads in (4, 2, 2))
    with pytest.raises(NotImplementedError, match=message):
        adapter.attention_forward(module, q, k, v, **({"attention_mask": None} | arguments))


def test_refuses_packed_sequences() -> None:
    model, ids = tiny_llama(), random_tokens(1, 8)
    model.set_attn_implementation("gfx906")
    with pytest.raises(NotImplementedError, match="packed"):
        model(input_ids=ids, position_ids=torch.tensor([[0, 1, 2, 0, 1, 2, 3, 4]]), use_cache=False)


def test_refuses_float32_models() -> None:
    model = tiny_llama().float()
    model.set_attn_implementation("gfx906")
    with pytest.raises(TypeError, match="float32"):
        model(input_ids=random_tokens(1, 4))


@pytest.mark.parametrize("name", ["my_flash", "eager", "sdpa", "a|b", ""])
def test_register_refuses_names(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        adapter.register(name)


def test_register_takes_other_names_and_repeats() -> None:
    assert adapter.register("mi50") == "mi50"
    assert adapter.register("mi50") == "mi50"
    assert AttentionInterface()["mi50"] is adapter.attention_forward
