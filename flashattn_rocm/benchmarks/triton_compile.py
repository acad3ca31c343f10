"""Compiles the Triton kernel for gfx906 ahead of time; no card is needed."""

import functools
from dataclasses import dataclass
from typing import Any

ARCH = "gfx906"
WAVE = 64

# `pip install 'flashattn-rocm[benchmark]'` brings it; it is 300 MB, so nothing else needs it.
MISSING = "triton is not installed: pip install 'flashattn-rocm[benchmark]'"


@dataclass(frozen=True)
class TritonTile:
    """Meta-parameters of the kernel.

    Attributes:
        block_m: query rows of a workgroup.
        block_n: keys of a step.
        piece: elements of the head dimension that the scores are summed over at a time.
        piece_stages: stages of Triton's software pipeline over these pieces; 1: none.
        warps: waves of a workgroup.
        waves_per_eu: waves a SIMD to limit registers for; 0: the compiler's choice.
        scheduler: LLVM's amdgpu-sched-strategy; "": the compiler's choice.
    """

    block_m: int
    block_n: int
    piece: int
    piece_stages: int = 1
    warps: int = 4
    waves_per_eu: int = 0
    scheduler: str = "iterative-ilp"

    def __str__(self) -> str:
        return f"m{self.block_m}n{self.block_n}w{self.warps}p{self.piece}s{self.piece_stages}"


# By head dim: of what docs/tuning/triton-rival.md tried on the simulated MI50, the fastest on some shapes.
TRITON_TILES = {
    64: (
        TritonTile(block_m=32, block_n=32, piece=64, warps=2),
        TritonTile(block_m=64, block_n=32, piece=64),
    ),
    128: (
        TritonTile(block_m=64, block_n=32, piece=64),
        TritonTile(block_m=64, block_n=32, piece=16, piece_stages=2),
        TritonTile(block_m=64, block_n=16, piece=128),
    ),
}


@dataclass(frozen=True)
class TritonKernel:
    """A compiled kernel.

    Attributes:
        name: in the code object.
        code_object: an ELF file's bytes.
        threads: of a workgroup.
        lds_bytes: dynamic LDS of a launch.
        assembly: AMDGCN text.
    """

    name: str
    code_object: bytes
    threads: int
    lds_bytes: int
    assembly: str


def triton_missing() -> str | None:
    """Why the rival cannot be compiled; None if it can."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return MISSING
    return None


@functools.cache
def compile_attention(head_dim: int, causal: bool, tile: TritonTile) -> TritonKernel:
    """Compiles the forward for fp16 tensors whose strides are multiples of 16 elements.

    Raises:
        ImportError: Triton is not installed; says how to install it.
    """
    try:
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource
    except ImportError as error:
        raise ImportError(MISSING) from error
    from flashattn_rocm.benchmarks.triton_kernel import attention_forward

    names: list[str] = attention_forward.arg_names
    constants: dict[str, Any] = {
        "head_dim": head_dim,
        "block_m": tile.block_m,
        "block_n": tile.block_n,
        "piece": tile.piece,
        "piece_stages": tile.piece_stages,
        "causal": causal,
    }
    types = {"qk_scale": "fp32", "lse_base": "*fp32"}
    types |= {name: "*fp16" for name in ("q_base", "k_base", "v_base", "o_base")}
    types |= dict.fromkeys(constants, "constexpr")
    by_16 = [name for name in names if name.endswith(("_base", "_batch", "_row", "_head"))]
    source = ASTSource(
        attention_forward,
        {name: types.get(name, "i32") for name in names},
        {(names.index(name),): value for name, value in constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in by_16},
    )
    attributes = f"amdgpu-sched-strategy={tile.scheduler}" if tile.scheduler else ""
    compiled = triton.compile(
        source,
        target=GPUTarget("hip", ARCH, WAVE),
        options={
            "num_warps": tile.warps,
            "waves_per_eu": tile.waves_per_eu,
            "llvm_fn_attrs": attributes,
            "enable_fp_fusion": True,
        },
    )
    return TritonKernel(
        name=compiled.metadata.name,
        code_object=compiled.asm["hsaco"],
        threads=tile.warps * WAVE,
        lds_bytes=compiled.metadata.shared,
        assembly=compiled.asm["amdgcn"],
    )
