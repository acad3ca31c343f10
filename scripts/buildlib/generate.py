"""Sources that follow from the tile configuration; they live in build/generated and never in git."""

from collections.abc import Sequence
from pathlib import Path

from buildlib.stamp import write_if_changed
from buildlib.tile_config import (
    BYTE_FORMATS,
    BwdKernel,
    DecodeKernel,
    FwdKernel,
    GradientKernel,
    TileKernel,
)

_HEADER = "// Generated from configs/ by scripts/build_kernels.py.\n"


def write_instances(folder: Path, kernels: Sequence[TileKernel], attn_probs: bool = False) -> Path:
    """Writes the device translation unit: one __global__ function a kernel, and what some need beside.

    Args:
        folder: for the file.
        kernels: of the forward and the backward.
        attn_probs: whether the kernels that write probabilities out, which have no tile, are in it too.
    """
    bwd = [kernel for kernel in kernels if isinstance(kernel, GradientKernel)]
    fwd = [kernel for kernel in kernels if not isinstance(kernel, GradientKernel)]
    functions = []
    for kernel in fwd:
        args, body = _entry(kernel)
        functions.append(_function(kernel.tile.threads, kernel.name, args, f"{body}<{kernel.cpp}>"))
    functions += [
        _function(
            "flashattn::kAttnProbsThreads",
            f"flashattn_attn_probs_{element}",
            "AttnProbsArgs",
            f"attn_probs<flashattn::Element::{element}>",
        )
        for element in (("f16", "bf16", "f32") if attn_probs else ())
    ]
    functions += [
        _function(kernel.tile.threads, kernel.name, "BwdArgs", f"bwd<{kernel.cpp}>") for kernel in bwd
    ]
    file = folder / "instances.hip"
    headers = ("attn_probs", "fwd_split", *(("bwd",) if bwd else ()))
    includes = "".join(f'#include "kernels/{name}.h"\n' for name in headers)
    write_if_changed(file, f"{_HEADER}{includes}\n{''.join(functions)}")
    return file


def _splits(kernel: TileKernel) -> bool:
    return isinstance(kernel, FwdKernel) and kernel.split


def _entry(kernel: TileKernel) -> tuple[str, str]:
    return ("SplitFwdArgs", "fwd_split") if _splits(kernel) else ("FwdArgs", "fwd")


def _function(threads: int | str, name: str, args: str, body: str) -> str:
    return (
        f'extern "C" __global__ void FLASHATTN_WORKGROUP({threads})\n'
        f"    {name}(flashattn::{args} args) {{\n"
        f"  flashattn::{body}(args);\n"
        "}\n\n"
    )


def write_fwd_table(folder: Path, kernels: Sequence[FwdKernel]) -> Path:
    """Writes the host's dispatch table; the order of the rows is that of the configuration."""
    rows = "".join(
        f'    {{"{kernel.name}", {kernel.cpp}, {kernel.tile.workgroups_per_cu}, '
        f"{{{kernel.tile.clocks.fixed}, {kernel.tile.clocks.step}, {kernel.tile.clocks.step_full}}}, "
        f"{'true' if kernel.split else 'false'}}},\n"
        for kernel in kernels
    )
    file = folder / "fwd_table.h"
    write_if_changed(
        file,
        f'{_HEADER}#pragma once\n\n#include "core/kernel_table.h"\n\nnamespace flashattn {{\n\n'
        f"inline constexpr FwdKernel kFwdKernels[] = {{\n{rows}}};\n\n}}  // namespace flashattn\n",
    )
    return file


def write_bwd_table(folder: Path, kernels: Sequence[BwdKernel]) -> Path:
    """Writes the host's table of the backward's kernels, in the order of the configuration's rows."""
    rows = "".join(f'    {{"{kernel.name}", {kernel.cpp}}},\n' for kernel in kernels)
    file = folder / "bwd_table.h"
    write_if_changed(
        file,
        f'{_HEADER}#pragma once\n\n#include "core/kernel_table.h"\n\nnamespace flashattn {{\n\n'
        f"inline constexpr BwdKernel kBwdKernels[] = {{\n{rows}}};\n\n}}  // namespace flashattn\n",
    )
    return file


def write_lds_report(folder: Path, fwd: Sequence[FwdKernel], bwd: Sequence[BwdKernel]) -> Path:
    """Writes a host program that prints `name q kv p scales limit` of kernels, by core/lds_budget.h."""
    lines = "".join(
        f'  report("{kernel.name}", flashattn::{function}({kernel.tile.cpp}, '
        f"flashattn::Element::{kernel.element}));\n"
        for kernels, function in ((fwd, "fwd_lds_budget"), (bwd, "bwd_lds_budget"))
        for kernel in kernels
    )
    file = folder / "lds_report.cpp"
    write_if_changed(
        file,
        f'{_HEADER}#include <cstdio>\n\n#include "core/lds_budget.h"\n\n'
        "static void report(const char* name, const flashattn::LdsBudget& budget) {\n"
        '  std::printf("%s %d %d %d %d %d\\n", name, budget.q, budget.kv, budget.p, budget.scales,\n'
        "              flashattn::kLdsBytesPerWorkgroup);\n"
        f"}}\n\nint main() {{\n{lines}}}\n",
    )
    return file


def write_decode_instances(folder: Path, kernels: Sequence[DecodeKernel]) -> Path:
    """Writes the device translation unit of the kernels that work on a KV cache."""
    functions = [
        _function(kernel.tile.threads, kernel.name, "DecodeArgs", f"decode<{kernel.cpp}>")
        for kernel in kernels
    ]
    for element in ("f16", "bf16"):
        of = f"<flashattn::Element::{element}>"
        functions += [
            _function(
                "flashattn::kJoinThreads", f"flashattn_join_splits_{element}", "JoinArgs", "join_splits" + of
            ),
            _function(
                "flashattn::kAppendThreads", f"flashattn_append_kv_{element}", "AppendArgs", "append_kv" + of
            ),
        ]
    functions += [
        _function(
            "flashattn::kAppendThreads",
            f"flashattn_append_kv_{form}",
            "AppendArgs",
            f"append_kv_bytes<flashattn::KvFormat::{form}>",
        )
        for form in BYTE_FORMATS
    ]
    functions += [
        _function(
            "flashattn::kMergeThreads",
            f"flashattn_merge_states_{element}",
            "MergeArgs",
            f"merge_states<flashattn::Element::{element}>",
        )
        for element in ("f16", "bf16", "f32")
    ]
    names = ("append_kv", "append_kv_bytes", "decode", "join_splits", "merge_states")
    includes = "".join(f'#include "kernels/{name}.h"\n' for name in names)
    file = folder / "decode_instances.hip"
    write_if_changed(file, f"{_HEADER}{includes}\n{''.join(functions)}")
    return file


def write_decode_table(folder: Path, kernels: Sequence[DecodeKernel]) -> Path:
    """Writes the host's table of the decode kernels, in the order of the configuration."""
    rows = "".join(
        f'    {{"{kernel.name}", {kernel.tile.cpp}, flashattn::Element::{kernel.element}, '
        f"flashattn::KvFormat::{kernel.tile.format}, "
        f"{kernel.tile.workgroups_per_cu}, {kernel.tile.compute_share}}},\n"
        for kernel in kernels
    )
    file = folder / "decode_table.h"
    write_if_changed(
        file,
        f'{_HEADER}#pragma once\n\n#include "core/kernel_table.h"\n\nnamespace flashattn {{\n\n'
        f"inline constexpr DecodeKernel kDecodeKernels[] = {{\n{rows}}};\n\n}}  // namespace flashattn\n",
    )
    return file
