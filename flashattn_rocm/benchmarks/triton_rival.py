"""The Triton kernel as an implementation: its code object, launched through HIP on either backend."""

import functools
import math
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

import flashattn_rocm._C as _C
from flashattn_rocm.benchmarks.device import Device
from flashattn_rocm.benchmarks.implementations import Forward, Implementation, Inputs
from flashattn_rocm.benchmarks.triton_compile import (
    TRITON_TILES,
    TritonTile,
    compile_attention,
    triton_missing,
)
from flashattn_rocm.sim.hip import Hip, Module, simulator

_STRIDE_MULTIPLE = 16  # elements; compile_attention promises it to the compiler


class TritonRival:
    """The kernel of triton_kernel.py, compiled for gfx906.

    Attributes:
        name: on the command line and in results.
    """

    name = "triton"

    def __init__(self, tile: TritonTile | None = None) -> None:
        """With one tile in place of those that are known for a head dim."""
        self._tile = tile

    def unavailable(self, device: Device, head_dim: int) -> str | None:
        """Without Triton, and for head dims that nothing was tuned for."""
        if head_dim not in TRITON_TILES and self._tile is None:
            return f"no Triton tile for head dim {head_dim}, known are {', '.join(map(str, TRITON_TILES))}"
        return triton_missing()

    def variants(self, head_dim: int) -> Sequence[Implementation]:
        """One a known tile, as ``triton.autotune`` would try them."""
        return [self] if self._tile else [TritonRival(tile) for tile in TRITON_TILES[head_dim]]

    @contextmanager
    def prepared(self, inputs: Inputs, causal: bool) -> Iterator[Forward]:
        """Compiles for these inputs and loads the code object.

        Raises:
            ValueError: a stride is no multiple of 16 elements.
        """
        q, k, v = inputs
        batch, seqlen_q, heads, head_dim = q.shape
        out = torch.empty_like(q)
        lse = torch.empty(batch, heads, seqlen_q, dtype=torch.float32, device=q.device)
        tile = self._tile or TRITON_TILES[head_dim][0]
        kernel = compile_attention(head_dim, causal, tile)
        arguments = _pack_arguments(q, k, v, out, lse)
        grid = (-(-seqlen_q // tile.block_m), heads * batch, 1)
        on_card = q.device.type == "cuda"
        hip = card_runtime() if on_card else simulator()
        stream = torch.cuda.current_stream().cuda_stream if on_card else None
        with Module(hip, kernel.code_object) as module, _visible(hip, inputs, (out, lse)):
            function = module.function(kernel.name)

            def forward() -> tuple[Tensor, Tensor]:
                hip.launch(
                    function,
                    arguments,
                    grid=grid,
                    block=(kernel.threads, 1, 1),
                    dynamic_lds=kernel.lds_bytes,
                    stream=stream,
                )
                return out, lse

            yield forward

    def tile(self, kernel: str | None, head_dim: int) -> str:
        """Its meta-parameters."""
        return str(self._tile or TRITON_TILES[head_dim][0])


@functools.cache
def card_runtime() -> Hip:
    """The HIP runtime that torch has loaded.

    Raises:
        RuntimeError: there is none.
    """
    return Hip(Path(_C.describe_backend("hip")["library"]))


def _pack_arguments(q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor) -> bytes:
    """The kernel's arguments without its constants, each at its natural alignment."""
    strides = [stride for tensor in (q, k, v, out) for stride in tensor.stride()[:3]]
    if any(stride % _STRIDE_MULTIPLE for stride in strides) or {t.stride(-1) for t in (q, k, v, out)} != {1}:
        raise ValueError(f"strides {strides}: all must be multiples of {_STRIDE_MULTIPLE}, the last one 1")
    seqlen_q, heads, head_dim = q.shape[1:]
    addresses = [tensor.data_ptr() for tensor in (q, k, v, out, lse)]
    qk_scale = math.log2(math.e) / math.sqrt(head_dim)
    sizes = (seqlen_q, k.shape[1], heads, heads // k.shape[2])
    packed = struct.pack("<5Qf16i", *addresses, qk_scale, *strides, *sizes)
    # Behind them Triton wants its global scratch and its profiler's, which this kernel has none of.
    return packed + bytes(-len(packed) % 8) + struct.pack("<2Q", 0, 0)


@contextmanager
def _visible(hip: Hip, read: tuple[Tensor, ...], written: tuple[Tensor, ...]) -> Iterator[None]:
    """Lets the simulated card see host tensors; on a card they are its own."""
    hosts = [tensor for tensor in (*read, *written) if tensor.device.type == "cpu"]
    for tensor in hosts:
        hip.call("hipHostRegister", tensor.data_ptr(), tensor.nbytes, 0)
    try:
        yield
    finally:
        for tensor in hosts:
            hip.call("hipHostUnregister", tensor.data_ptr())
