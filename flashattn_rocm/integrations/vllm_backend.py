"""The classes that vLLM's V1 engine asks of a backend; see :mod:`flashattn_rocm.integrations.vllm`.

One call of :func:`flashattn_rocm.kvcache.attend_paged` serves a step, whatever mix of prompts, chunks of
prompts and single tokens it is: queries are packed, each sequence has its own length and pages, and masks are
aligned at the bottom right. Lengths, tables and slots stay on the device, so captured graphs replay with
others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionCGSupport,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)

from flashattn_rocm.arguments import op_keywords
from flashattn_rocm.interface import flash_attn_varlen_func
from flashattn_rocm.kvcache import attend_paged

__all__ = [
    "FlashAttnRocmBackend",
    "FlashAttnRocmImpl",
    "FlashAttnRocmMetadata",
    "FlashAttnRocmMetadataBuilder",
]

_ENCODERS = (AttentionType.ENCODER, AttentionType.ENCODER_ONLY)
_LARGEST_HEAD = 512
_LARGEST_HEAD_OF_BYTES = 256
# What the bytes are that vLLM allocates for such a cache.
_OF_BYTES = {
    "fp8": torch.float8_e4m3fn,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
}


def _reason_against(kv_cache_dtype: str | None, dtype: torch.dtype | None, head_size: int) -> str | None:
    """Why a cache of bytes cannot be served; None: it can, or it is none. dtype: None where it is unknown."""
    if kv_cache_dtype not in _OF_BYTES:
        return None
    if dtype not in (None, torch.float16):
        return f"kv_cache_dtype={kv_cache_dtype!r} needs a float16 model; dtype is {dtype}"
    if head_size % 8 != 0 or head_size > _LARGEST_HEAD_OF_BYTES:
        return (
            f"kv_cache_dtype={kv_cache_dtype!r} needs a head_size that is a multiple of 8 and at most "
            f"{_LARGEST_HEAD_OF_BYTES}; it is {head_size}"
        )
    return None


@dataclass
class FlashAttnRocmMetadata:
    """What a step's attention needs, for all layers.

    Attributes:
        num_actual_tokens: queries of the step; what follows them in its tensors is padding of graphs.
        max_query_len: the longest sequence of queries.
        query_start_loc: (num_reqs + 1,), int32: where each sequence's queries begin.
        seq_lens: (num_reqs,), int32: keys of each, those of this step among them.
        block_table: (num_reqs, max_blocks), int32: their pages.
        causal: False for layers that look at all keys.
    """

    num_actual_tokens: int
    max_query_len: int
    query_start_loc: Tensor
    seq_lens: Tensor
    block_table: Tensor
    causal: bool


class FlashAttnRocmMetadataBuilder(AttentionMetadataBuilder):
    """Makes the metadata of a step; the common ones hold all of it."""

    # The number of splits follows from shapes, so a replayed graph is right for other lengths.
    _cudagraph_support: ClassVar[AttentionCGSupport] = AttentionCGSupport.UNIFORM_BATCH

    def __init__(
        self, kv_cache_spec: Any, layer_names: list[str], vllm_config: Any, device: torch.device
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(
        self, common_prefix_len: int, common_attn_metadata: Any, fast_build: bool = False
    ) -> FlashAttnRocmMetadata:
        """The metadata of a step; vLLM's ``CommonAttentionMetadata`` by other names."""
        common = common_attn_metadata
        return FlashAttnRocmMetadata(
            num_actual_tokens=common.num_actual_tokens,
            max_query_len=common.max_query_len,
            query_start_loc=common.query_start_loc,
            seq_lens=common.seq_lens,
            block_table=common.block_table_tensor,
            causal=common.causal,
        )


class FlashAttnRocmBackend(AttentionBackend):
    """What the backend serves, and the layout of its cache."""

    accept_output_buffer: bool = True
    forward_includes_kv_cache_update: bool = False
    supported_dtypes: ClassVar[list[torch.dtype]] = [torch.float16, torch.bfloat16]
    supported_kv_cache_dtypes: ClassVar[list[str]] = ["auto", "float16", "bfloat16", *_OF_BYTES]

    @staticmethod
    def get_name() -> str:
        """The name under which vLLM knows an out-of-tree backend."""
        return "CUSTOM"

    @staticmethod
    def get_impl_cls() -> type[FlashAttnRocmImpl]:
        """The class that computes."""
        return FlashAttnRocmImpl

    @staticmethod
    def get_builder_cls() -> type[FlashAttnRocmMetadataBuilder]:
        """The class that makes metadata."""
        return FlashAttnRocmMetadataBuilder

    @staticmethod
    def get_supported_kernel_block_sizes() -> list[Any]:
        """Pages of any multiple of 16 keys."""
        return [MultipleOf(16)]

    @staticmethod
    def get_kv_cache_shape(
        num_blocks: int, block_size: int, num_kv_heads: int, head_size: int, cache_dtype_str: str = "auto"
    ) -> tuple[int, ...]:
        """(num_blocks, 2, block_size, num_kv_heads, head_size): K and V of a page are neighbours.

        Raises:
            ValueError: block_size is no multiple of 16.
        """
        if block_size % 16 != 0:
            raise ValueError(f"block_size must be a multiple of 16; got {block_size}")
        return (num_blocks, 2, block_size, num_kv_heads, head_size)

    @staticmethod
    def get_kv_cache_stride_order(include_num_layers_dimension: bool = False) -> tuple[int, ...]:
        """As they are; with a dimension of layers the pages come first."""
        return (1, 0, 2, 3, 4, 5) if include_num_layers_dimension else (0, 1, 2, 3, 4)

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        """Every size up to 512."""
        return 0 < head_size <= _LARGEST_HEAD

    @classmethod
    def supports_combination(
        cls, head_size: int, dtype: torch.dtype, kv_cache_dtype: str | None, *_: Any, **__: Any
    ) -> str | None:
        """Why vLLM must not choose the backend, or None; what follows kv_cache_dtype differs by release."""
        return _reason_against(kv_cache_dtype, dtype, head_size)

    @classmethod
    def supports_sink(cls) -> bool:
        """Learned sinks join the softmax."""
        return True

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        """Decoders, and encoders without a cache."""
        return attn_type in (AttentionType.DECODER, *_ENCODERS)


class FlashAttnRocmImpl(AttentionImpl):
    """Attention of one layer.

    Args:
        num_heads: of queries.
        head_size: of queries, keys and values.
        scale: of the scores.
        num_kv_heads: of keys and values; None: as many as of queries.
        alibi_slopes: one for each head.
        sliding_window: keys that a query sees, itself among them.
        kv_cache_dtype: "auto", the model's own dtype by name, or for a float16 model "fp8", "fp8_e4m3" or
            "fp8_e5m2".
        logits_soft_cap: bound of the scores; None or 0: none.
        attn_type: a decoder, or an encoder without a cache.
        kv_sharing_target_layer_name: the layer whose cache this one reads; that one writes it.
        sinks: (num_heads,): a score for each head that joins the softmax.

    Raises:
        NotImplementedError: a cache of another dtype, or of bytes for such a head_size, or another type of
            attention.
    """

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        sinks: Tensor | None = None,
    ) -> None:
        if not FlashAttnRocmBackend.supports_attn_type(attn_type):
            raise NotImplementedError(f"attn_type={attn_type!r}: decoders and encoders are served")
        if kv_cache_dtype not in FlashAttnRocmBackend.supported_kv_cache_dtypes:
            allowed = ", ".join(FlashAttnRocmBackend.supported_kv_cache_dtypes)
            raise NotImplementedError(f"kv_cache_dtype={kv_cache_dtype!r} must be one of {allowed}")
        if reason := _reason_against(kv_cache_dtype, None, head_size):
            raise NotImplementedError(reason)
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.attn_type = attn_type
        self.kv_sharing_target_layer_name = kv_sharing_target_layer_name
        self.alibi_slopes = None if alibi_slopes is None else torch.tensor(alibi_slopes, dtype=torch.float32)
        self.sinks = sinks
        self.logits_soft_cap = logits_soft_cap or 0.0
        left = -1 if sliding_window is None else sliding_window - 1
        self.window_size = (left, left if attn_type in _ENCODERS else -1 if sliding_window is None else 0)

    def forward(
        self,
        layer: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        kv_cache: Tensor,
        attn_metadata: FlashAttnRocmMetadata | None,
        output: Tensor | None = None,
        output_scale: Tensor | None = None,
        output_block_scale: Tensor | None = None,
    ) -> Tensor:
        """Attention of a step's queries to their sequences.

        Args:
            layer: of a cache of bytes, which are multiplied by its ``_k_scale`` and ``_v_scale``, float32 of
                one element.
            query: (num_tokens, num_heads, head_size).
            key: (num_tokens, num_kv_heads, head_size), which a decoder reads from the cache.
            value: likewise.
            kv_cache: of :meth:`FlashAttnRocmBackend.get_kv_cache_shape`, or (num_blocks, num_kv_heads,
                block_size, 2 * head_size) with K and V side by side, of any strides; bytes as uint8.
            attn_metadata: of the step; None while vLLM measures memory: the output is 0 then.
            output: like query; the result goes there.
            output_scale: must be None.
            output_block_scale: must be None.

        Returns:
            output.

        Raises:
            NotImplementedError: a quantised output is asked for.
            TypeError: query is not float16, and the cache is of bytes.
            ValueError: output is None.
        """
        if output is None:
            raise ValueError("output is None; the buffer for the result must be given")
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError("output_scale and output_block_scale: outputs are not quantised")
        if attn_metadata is None:
            return output.fill_(0)
        tokens = attn_metadata.num_actual_tokens
        if self.attn_type in _ENCODERS:
            out = self._attend_itself(query[:tokens], key, value, attn_metadata)
        else:
            out = self._attend_cache(layer, query[:tokens], kv_cache, attn_metadata)
        output[:tokens].view_as(out).copy_(out)
        return output

    def do_kv_cache_update(
        self, layer: Any, key: Tensor, value: Tensor, kv_cache: Tensor, slot_mapping: Tensor
    ) -> None:
        """Writes a step's keys and values to their slots.

        Args:
            layer: of a cache of bytes, for which keys and values are divided by its scales and rounded; what
                is too large becomes the format's largest.
            key: (num_tokens or more, num_kv_heads, head_size).
            value: likewise.
            kv_cache: see :meth:`forward`.
            slot_mapping: (num_tokens,), integers: page * block_size + place in the page; a negative one
                belongs to a padded token, which is not written.
        """
        if self.attn_type in _ENCODERS:
            return
        k_cache, v_cache = self._split(kv_cache)
        slots = slot_mapping
        key, value = key[: len(slots)], value[: len(slots)]
        if not slots.is_cuda:  # on the simulator an item that the cache lacks is an error, a card skips it
            written = slots >= 0
            slots, key, value = slots[written], key[written], value[written]
        # A token is a sequence of one, appended to the page that is its item of the cache.
        page = slots.div(k_cache.shape[1], rounding_mode="floor").to(torch.int32)
        torch.ops.flashattn_rocm.append_kv_(
            k_cache,
            v_cache,
            key.unsqueeze(1),
            value.unsqueeze(1),
            slots.remainder(k_cache.shape[1]).to(torch.int32),
            cache_batch_idx=page,
            **self._scales(layer),
        )

    def _attend_cache(
        self, layer: Any, query: Tensor, kv_cache: Tensor, metadata: FlashAttnRocmMetadata
    ) -> Tensor:
        k_cache, v_cache = self._split(kv_cache)
        out, _ = attend_paged(
            query,
            k_cache,
            v_cache,
            metadata.query_start_loc,
            metadata.seq_lens,
            metadata.max_query_len,
            metadata.block_table,
            self.scale,
            metadata.causal,
            **op_keywords(
                self.window_size,
                self.logits_soft_cap,
                alibi_slopes=self._on(query.device, self.alibi_slopes),
                sinks=self.sinks,
                **self._scales(layer),
            ),
        )
        return out

    def _attend_itself(
        self, query: Tensor, key: Tensor, value: Tensor, metadata: FlashAttnRocmMetadata
    ) -> Tensor:
        out: Tensor = flash_attn_varlen_func(
            query,
            key[: len(query)],
            value[: len(query)],
            metadata.query_start_loc,
            metadata.query_start_loc,
            metadata.max_query_len,
            metadata.max_query_len,
            softmax_scale=self.scale,
            window_size=self.window_size,
            softcap=self.logits_soft_cap,
            alibi_slopes=self._on(query.device, self.alibi_slopes),
            sinks=self.sinks,
        )
        return out

    def _split(self, kv_cache: Tensor) -> tuple[Tensor, Tensor]:
        """K and V, each (num_blocks, block_size, num_kv_heads, head_size), where they lie."""
        if self.kv_cache_dtype in _OF_BYTES:
            kv_cache = kv_cache.view(_OF_BYTES[self.kv_cache_dtype])
        if kv_cache.dim() == 5:
            k_cache, v_cache = kv_cache.unbind(1)
            return k_cache, v_cache
        by_tokens = kv_cache.transpose(1, 2)
        return by_tokens[..., : self.head_size], by_tokens[..., self.head_size :]

    def _scales(self, layer: Any) -> dict[str, Tensor]:
        """One for all keys and one for all values, of a cache of bytes alone."""
        if self.kv_cache_dtype not in _OF_BYTES:
            return {}
        return {"k_scale": layer._k_scale, "v_scale": layer._v_scale}

    def _on(self, device: torch.device, slopes: Tensor | None) -> Tensor | None:
        """The slopes on the device of the queries, where they then stay."""
        if slopes is not None and slopes.device != device:
            slopes = self.alibi_slopes = slopes.to(device)
        return slopes
