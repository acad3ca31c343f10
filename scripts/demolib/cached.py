"""Greedy decoding of a transformers model whose attention is flash_attn_with_kvcache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from flashattn_rocm import flash_attn_with_kvcache

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["CachedAttention", "generate"]

_NAME = "gfx906_cache"


class CachedAttention:
    """A KV cache for a batch of sequences of unlike lengths, and the attention function that uses it.

    Attributes:
        lengths: (batch,), int32: keys of each sequence.
    """

    def __init__(self, model: PreTrainedModel, batch: int, capacity: int, page_size: int = 0) -> None:
        """Makes an empty cache on the model's device, in its dtype.

        Args:
            model: with one head dim for all layers.
            batch: sequences.
            capacity: most keys of each.
            page_size: of a paged cache, whose pages then lie in a random order; 0: a dense one.
        """
        config = model.config
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=model.device)
        self._block_table: Tensor | None = None
        rows = (batch, capacity)
        if page_size:
            each = -(-capacity // page_size)
            order = torch.randperm(batch * each, generator=torch.Generator().manual_seed(0))
            self._block_table = order.view(batch, each).int().to(model.device)
            rows = (batch * each, page_size)
        shape = (config.num_hidden_layers, *rows, config.num_key_value_heads, head_dim)
        self._k, self._v = (torch.zeros(shape, dtype=model.dtype, device=model.device) for _ in range(2))

    def register(self) -> str:
        """Makes this cache the one of an attention implementation of transformers; returns its name."""
        from transformers import AttentionInterface, AttentionMaskInterface

        AttentionInterface.register(_NAME, self._attend)
        AttentionMaskInterface.register(_NAME, lambda *_, **__: None)  # lengths say what a query sees
        return _NAME

    def _attend(
        self,
        module: torch.nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: None,
        scaling: float | None = None,
        **_: Any,
    ) -> tuple[Tensor, None]:
        """Appends the keys and values, (batch, heads, new tokens, head_dim), and attends to all so far."""
        layer: Any = module.layer_idx
        q, k, v = (each.transpose(1, 2) for each in (query, key, value))
        out = flash_attn_with_kvcache(
            q,
            self._k[layer],
            self._v[layer],
            k,
            v,
            cache_seqlens=self.lengths,
            block_table=self._block_table,
            softmax_scale=scaling,
            causal=True,
        )
        assert isinstance(out, Tensor)
        return out, None


def generate(
    model: PreTrainedModel, prompts: Sequence[Tensor], tokens: int, page_size: int = 0
) -> tuple[Tensor, Tensor]:
    """Greedy tokens of each prompt: one step for all prompts, then one for each further token.

    Shorter prompts are filled up on the right. What they append behind their end is not seen by a causal
    query before it, and is overwritten by the tokens that follow.

    Args:
        model: its attention implementation is changed.
        prompts: of each sequence, (prompt tokens,), int64.
        tokens: how many to generate for each.
        page_size: of the cache; 0: dense.

    Returns:
        Tokens (batch, tokens), and the float32 logits (batch, tokens, vocabulary) that they were chosen from.
    """
    lengths = torch.tensor([len(prompt) for prompt in prompts])
    longest = int(lengths.max())
    cache = CachedAttention(model, len(prompts), longest + tokens, page_size)
    model.set_attn_implementation(cache.register())
    ids = torch.nn.utils.rnn.pad_sequence(list(prompts), batch_first=True).to(model.device)
    last = torch.arange(len(prompts)), lengths - 1
    logits = []
    with torch.no_grad():
        logits.append(_forward(model, ids, torch.arange(longest)[None].expand_as(ids))[last][:, None])
        cache.lengths += lengths.int().to(model.device)
        while len(logits) < tokens:
            logits.append(_forward(model, logits[-1].argmax(-1), cache.lengths[:, None].long()))
            cache.lengths += 1
    found = torch.cat(logits, 1).float()
    return found.argmax(-1), found


def _forward(model: PreTrainedModel, ids: Tensor, positions: Tensor) -> Tensor:
    return model(ids, position_ids=positions.to(ids.device), use_cache=False).logits
