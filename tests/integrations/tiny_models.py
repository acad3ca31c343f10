"""Random models small enough for the simulated card, with head dims that the kernels serve."""

from __future__ import annotations

import torch
from transformers import (
    BertConfig,
    BertModel,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GptOssConfig,
    GptOssForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen3VLVisionModel,
    T5Config,
    T5ForConditionalGeneration,
)
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLVisionConfig
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VisionTransformerPretrainedModel
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig

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


_VISION: dict[str, object] = {"initializer_range": 0.1, "attn_implementation": "eager"}


def tiny_llama(**overrides: object) -> LlamaForCausalLM:
    """Two layers, 4 query heads on 2 KV heads of head dim 32, float16, eval mode, attention "eager"."""
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**(_DECODER | overrides))).to(torch.float16).eval()


def tiny_mistral(sliding_window: int) -> MistralForCausalLM:
    """As tiny_llama, every layer with a sliding window."""
    torch.manual_seed(0)
    config = MistralConfig(**_DECODER, sliding_window=sliding_window)
    return MistralForCausalLM(config).to(torch.float16).eval()


def tiny_gemma2(head_dim: int = 32) -> Gemma2ForCausalLM:
    """As tiny_llama; soft-capped logits, a sliding window of 8 in every other layer, another scale."""
    torch.manual_seed(0)
    config = Gemma2Config(
        **_DECODER, head_dim=head_dim, sliding_window=8, attn_logit_softcapping=5.0, query_pre_attn_scalar=20
    )
    return Gemma2ForCausalLM(config).to(torch.float16).eval()


def tiny_gemma3() -> Gemma3ForCausalLM:
    """As tiny_llama, of head dim 256; a sliding window of 8 in layer 0, queries and keys normalised."""
    torch.manual_seed(0)
    config = Gemma3TextConfig(
        **_DECODER,
        head_dim=256,
        sliding_window=8,
        query_pre_attn_scalar=256,
        layer_types=["sliding_attention", "full_attention"],
    )
    return Gemma3ForCausalLM(config).to(torch.float16).eval()


def tiny_qwen2_vl_vision() -> Qwen2VisionTransformerPretrainedModel:
    """Two layers, 2 heads of head dim 80, as in Qwen2-VL's vision tower; patches of 4 x 4."""
    torch.manual_seed(0)
    config = Qwen2VLVisionConfig(
        depth=2, embed_dim=160, hidden_size=64, num_heads=2, mlp_ratio=1, patch_size=4, **_VISION
    )
    return Qwen2VisionTransformerPretrainedModel(config).to(torch.float16).eval()


def tiny_qwen3_vl_vision() -> Qwen3VLVisionModel:
    """Two layers, 2 heads of head dim 72, as in Qwen3-VL's vision tower; patches of 4 x 4."""
    torch.manual_seed(0)
    config = Qwen3VLVisionConfig(
        depth=2,
        hidden_size=144,
        intermediate_size=64,
        num_heads=2,
        patch_size=4,
        out_hidden_size=64,
        num_position_embeddings=64,
        deepstack_visual_indexes=[0],
        **_VISION,
    )
    return Qwen3VLVisionModel(config).to(torch.float16).eval()


def images(*sizes: tuple[int, int]) -> dict[str, torch.Tensor]:
    """What the processor of Qwen-VL makes of images of so many rows and columns of patches of 4 x 4."""
    generator = torch.Generator().manual_seed(3)
    patches = sum(rows * columns for rows, columns in sizes)
    return {
        # 3 colours, 2 frames, 4 x 4 pixels
        "hidden_states": torch.randn(patches, 3 * 2 * 4 * 4, generator=generator).half(),
        "grid_thw": torch.tensor([[1, rows, columns] for rows, columns in sizes]),
    }


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
