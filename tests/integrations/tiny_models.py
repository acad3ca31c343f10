"""Random models small enough for the simulated card, with head dims that the kernels serve."""

from __future__ import annotations

import torch
from transformers import (
    BertConfig,
    BertModel,
    Gemma2Config,
    Gemma2ForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

VOCAB = 101
PAD = 0


_DECODER: dict[str, object] = {
    "vocab_size": VOCAB,
    "hidden_size": 128,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "pad_token_id": PAD,
    "bos_token_id": 1,
    "eos_token_id": None,
    # The default 0.02 gives logits so flat that a wrong mask would hardly show.
    "initializer_range": 0.2,
    "attn_implementation": "eager",
}


def tiny_llama(**overrides: object) -> LlamaForCausalLM:
    """Two layers, 4 query heads on 2 KV heads of head dim 32, float16, eval mode, attention "eager"."""
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**(_DECODER | overrides))).to(torch.float16).eval()


def tiny_mistral(sliding_window: int) -> MistralForCausalLM:
    """As tiny_llama, every layer with a sliding window."""
    torch.manual_seed(0)
    config = MistralConfig(**_DECODER, sliding_window=sliding_window)
    return MistralForCausalLM(config).to(torch.float16).eval()


def tiny_gemma2() -> Gemma2ForCausalLM:
    """As tiny_llama; soft-capped logits, a sliding window of 8 in every other layer, another scale."""
    torch.manual_seed(0)
    config = Gemma2Config(
        **_DECODER, head_dim=32, sliding_window=8, attn_logit_softcapping=5.0, query_pre_attn_scalar=20
    )
    return Gemma2ForCausalLM(config).to(torch.float16).eval()


def tiny_gpt_oss() -> GptOssForCausalLM:
    """As tiny_llama; attention sinks, a sliding window of 8 in every other layer, two experts."""
    torch.manual_seed(0)
    config = GptOssConfig(
        **_DECODER, head_dim=32, sliding_window=8, num_local_experts=2, num_experts_per_tok=1
    )
    model = GptOssForCausalLM(config).to(torch.float16).eval()
    for layer in model.model.layers:
        layer.self_attn.sinks.data.normal_()
    return model


def tiny_t5() -> T5ForConditionalGeneration:
    """Two layers each of encoder and decoder, 4 heads of head dim 16, relative position bias."""
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=VOCAB,
        d_model=64,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        pad_token_id=PAD,
        decoder_start_token_id=PAD,
        attn_implementation="eager",
    )
    return T5ForConditionalGeneration(config).to(torch.float16).eval()


def tiny_bert() -> BertModel:
    """Two layers, 2 heads of head dim 32, float16, eval mode, attention "eager"."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=VOCAB,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        pad_token_id=PAD,
        initializer_range=0.2,
        attn_implementation="eager",
    )
    return BertModel(config, add_pooling_layer=False).to(torch.float16).eval()


def random_tokens(batch: int, length: int, seed: int = 1) -> torch.Tensor:
    """Token ids (batch, length), none of them padding."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(2, VOCAB, (batch, length), generator=generator)


def padding(lengths: list[int], width: int, side: str) -> torch.Tensor:
    """attention_mask (len(lengths), width), int64: 1 on ``lengths[row]`` tokens, padding on ``side``."""
    positions = torch.arange(width).expand(len(lengths), width)
    if side == "left":
        positions = positions.flip(1)
    return (positions < torch.tensor(lengths)[:, None]).long()
