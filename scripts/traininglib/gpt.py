"""A small GPT over bytes, with torch's scaled_dot_product_attention in float16."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["Gpt", "GptConfig"]


@dataclass(frozen=True)
class GptConfig:
    """Sizes.

    Attributes:
        layers: blocks of attention and MLP.
        heads: of attention.
        head_dim: columns of a head.
        context: most bytes that a byte is predicted from.
    """

    layers: int = 2
    heads: int = 2
    head_dim: int = 64
    context: int = 128

    @property
    def width(self) -> int:
        """Columns of the residual stream."""
        return self.heads * self.head_dim


class Gpt(nn.Module):
    """GPT-2's architecture (Radford et al. 2019): learned positions, LayerNorm first, tied embeddings."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        self.bytes = nn.Embedding(256, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.Sequential(*(_Block(config) for _ in range(config.layers)))
        self.norm = nn.LayerNorm(config.width)
        for table in (self.bytes, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, text: Tensor) -> Tensor:
        """Logits (batch, seqlen, 256) of the next byte.

        Args:
            text: (batch, seqlen), int64 from 0 to 255; seqlen is at most the context.
        """
        places = torch.arange(text.shape[1], device=text.device)
        hidden = self.blocks(self.bytes(text) + self.positions(places))
        return self.norm(hidden) @ self.bytes.weight.T


class _Block(nn.Module):
    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        width = config.width
        self.head_dim = config.head_dim
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.out(self._attention(self.before_attention(x)))
        return x + self.mlp(self.before_mlp(x))

    def _attention(self, x: Tensor) -> Tensor:
        heads = (t.unflatten(-1, (-1, self.head_dim)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        q, k, v = (t.half() for t in heads)
        return scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2).float()
