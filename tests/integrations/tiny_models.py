"""Random models small enough for the simulated card, with head dims that the kernels serve."""

from __future__ import annotations

import torch
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM

VOCAB = 101
PAD = 0


def tiny_llama(**overrides: object) -> LlamaForCausalLM:
    """Two layers, 4 query heads on 2 KV heads of head dim 32, float16, eval mode, attention "eager"."""
    torch.manual_seed(0)
    settings: dict[str, object] = {
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
    config = LlamaConfig(**(settings | overrides))
    return LlamaForCausalLM(config).to(torch.float16).eval()


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
