"""Builds gfx906 code objects from assembly text, and runs short snippets on one wave.

A snippet sees the registers it asked for and the harness reads back what it asked for:

    v0          lane number                     s[8:9]     address of Snippet.memory on the card
    v1 .. v99   free                            s16 .. s79 free, as are vcc, exec, m0, scc
    v100 up and the other scalar registers belong to the harness; with scratch_bytes s[0:3] is the
    buffer resource, s[6:7] the flat scratch base and s79 the wave's scratch offset

Every register that is read back is written first, so that lanes a snippet must not touch are
checked too. Many snippets go into one code object, because starting the assembler costs more than
running a thousand of them.
"""

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.kit.hip import Buffer, Hip, HipError, Module

Lanes = NDArray[np.uint32]  # [64]

LANES = 64
ALL_LANES = (1 << LANES) - 1
MAX_VGPRS = 16  # read in and out: 16 rows of 256 bytes fill the signed 13-bit offset
_SCALARS_AT = 4096
_SCALAR_SLOTS = 64
_BLOCK_BYTES = _SCALARS_AT + 4 * _SCALAR_SLOTS
_FIXED_SCALARS = 6  # vcc, exec, m0, scc


@dataclass(frozen=True)
class Kernel:
    """One kernel in assembly. `body` starts with s[4:5] = kernarg segment, v0 = work-item id."""

    name: str
    body: str
    lds_bytes: int = 0
    kernarg_bytes: int = 24
    max_threads: int = 64
    ieee: bool = True
    dx10_clamp: bool = True
    float_denorm_mode_32: int = 3
    float_denorm_mode_16_64: int = 3
    scratch_bytes: int = 0  # per lane; adds the scratch wave offset to the initial state
    three_dimensions: bool = False  # workgroup ids y, z in s7, s8 and work-item ids y, z in v1, v2


def _kernel_text(kernel: Kernel) -> str:
    return f"""
.text
.globl {kernel.name}
.p2align 8
.type {kernel.name},@function
{kernel.name}:
{kernel.body}
s_endpgm
.rodata
.p2align 6
.amdhsa_kernel {kernel.name}
  .amdhsa_user_sgpr_private_segment_buffer 1
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_user_sgpr_flat_scratch_init {int(kernel.scratch_bytes > 0)}
  .amdhsa_system_sgpr_private_segment_wavefront_offset {int(kernel.scratch_bytes > 0)}
  .amdhsa_system_sgpr_workgroup_id_y {int(kernel.three_dimensions)}
  .amdhsa_system_sgpr_workgroup_id_z {int(kernel.three_dimensions)}
  .amdhsa_system_vgpr_workitem_id {2 * int(kernel.three_dimensions)}
  .amdhsa_private_segment_fixed_size {kernel.scratch_bytes}
  .amdhsa_group_segment_fixed_size {kernel.lds_bytes}
  .amdhsa_kernarg_size {kernel.kernarg_bytes}
  .amdhsa_next_free_vgpr 128
  .amdhsa_next_free_sgpr 96
  .amdhsa_ieee_mode {int(kernel.ieee)}
  .amdhsa_dx10_clamp {int(kernel.dx10_clamp)}
  .amdhsa_float_denorm_mode_32 {kernel.float_denorm_mode_32}
  .amdhsa_float_denorm_mode_16_64 {kernel.float_denorm_mode_16_64}
.end_amdhsa_kernel
"""


def _metadata_text(kernel: Kernel) -> str:
    return f"""  - .name: {kernel.name}
    .symbol: {kernel.name}.kd
    .kernarg_segment_size: {kernel.kernarg_bytes}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {kernel.lds_bytes}
    .private_segment_fixed_size: {kernel.scratch_bytes}
    .wavefront_size: 64
    .sgpr_count: 102
    .vgpr_count: 128
    .max_flat_workgroup_size: {kernel.max_threads}
    .args:
      - {{.offset: 0, .size: {kernel.kernarg_bytes}, .value_kind: by_value}}
"""


def assemble(kernels: Sequence[Kernel]) -> bytes:
    """One gfx906 code object with all kernels; raises ValueError with the assembler's text."""
    clang = shutil.which("clang-19") or shutil.which("clang")
    if clang is None:
        raise FileNotFoundError("clang with the AMDGPU target is not installed (package clang-19)")
    source = '.amdgcn_target "amdgcn-amd-amdhsa--gfx906"\n'
    source += "".join(map(_kernel_text, kernels))
    source += ".amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n"
    source += "".join(map(_metadata_text, kernels))
    source += "...\n.end_amdgpu_metadata\n"
    with tempfile.TemporaryDirectory() as folder:
        text, output = Path(folder, "kernels.s"), Path(folder, "kernels.co")
        text.write_text(source)
        command = [clang, "--target=amdgcn-amd-amdhsa", "-mcpu=gfx906", "-mcode-object-version=5"]
        done = subprocess.run([*command, str(text), "-o", str(output)], capture_output=True, text=True)
        if done.returncode != 0:
            raise ValueError(f"assembler refused the snippets:\n{done.stderr}")
        return output.read_bytes()


@dataclass(frozen=True)
class Snippet:
    """Instructions, the state they start from, and the registers to read back."""

    body: str
    vgprs: Mapping[int, Lanes] = field(default_factory=dict)
    sgprs: Mapping[int, int] = field(default_factory=dict)
    vcc: int = 0xDEAD_BEEF_0BAD_F00D
    exec: int = ALL_LANES
    scc: int = 0
    m0: int = 0xFFFF_FFFF
    memory: bytes = b""
    read_vgprs: tuple[int, ...] = ()
    read_sgprs: tuple[int, ...] = ()
    lds_bytes: int = 0
    ieee: bool = True
    dx10_clamp: bool = True
    float_denorm_mode_32: int = 3
    float_denorm_mode_16_64: int = 3
    scratch_bytes: int = 0


@dataclass(frozen=True)
class Outcome:
    """The state after a snippet. `v` and `s` hold the registers it named."""

    v: dict[int, Lanes]
    s: dict[int, int]
    vcc: int
    exec: int
    scc: int
    m0: int
    memory: bytes


def untouched(register: int) -> Lanes:
    """What a VGPR that is only read back holds before the snippet, per lane."""
    return (0xC0DE_0000 + register * 0x100 + np.arange(LANES)).astype(np.uint32)


def untouched_scalar(register: int) -> int:
    return 0xFACE_0000 + register


def _inputs(snippet: Snippet) -> tuple[dict[int, Lanes], dict[int, int]]:
    vgprs = {r: untouched(r) for r in snippet.read_vgprs} | dict(snippet.vgprs)
    sgprs = {r: untouched_scalar(r) for r in snippet.read_sgprs} | dict(snippet.sgprs)
    if len(vgprs) > MAX_VGPRS or len(sgprs) > _SCALAR_SLOTS - _FIXED_SCALARS:
        raise ValueError(f"snippet uses {len(vgprs)} VGPRs and {len(sgprs)} SGPRs: too many to pass")
    return vgprs, sgprs


def _snippet_kernel(name: str, snippet: Snippet) -> Kernel:
    vgprs, sgprs = _inputs(snippet)
    lines = ["s_mov_b32 s79, s9"] if snippet.scratch_bytes else []
    lines += [
        "s_load_dwordx2 s[82:83], s[4:5], 0x0",
        "s_load_dwordx2 s[80:81], s[4:5], 0x8",
        "s_load_dwordx2 s[8:9], s[4:5], 0x10",
        "v_lshlrev_b32_e32 v100, 2, v0",
        "s_waitcnt lgkmcnt(0)",
    ]
    lines += [f"global_load_dword v{r}, v100, s[82:83] offset:{256 * i}" for i, r in enumerate(vgprs)]
    lines += [f"s_load_dwordx4 s[84:87], s[82:83], {_SCALARS_AT}"]
    lines += [f"s_load_dwordx2 s[88:89], s[82:83], {_SCALARS_AT + 16}"]
    at = _SCALARS_AT + 4 * _FIXED_SCALARS
    lines += [f"s_load_dword s{r}, s[82:83], {at + 4 * i}" for i, r in enumerate(sgprs)]
    lines += [
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
        "s_mov_b64 vcc, s[84:85]",
        "s_mov_b32 m0, s88",
        "s_cmp_lg_u32 s89, 0",
        "s_mov_b64 exec, s[86:87]",
        "s_nop 4",  # EXEC was written: a DPP snippet needs five slots
        snippet.body,
        "s_waitcnt vmcnt(0) lgkmcnt(0)",
        "s_cselect_b32 s89, 1, 0",
        "s_mov_b64 s[84:85], vcc",
        "s_mov_b64 s[86:87], exec",
        "s_mov_b32 s88, m0",
        "s_mov_b64 exec, -1",
    ]
    for i, register in enumerate(snippet.read_vgprs):
        lines.append(f"global_store_dword v100, v{register}, s[80:81] offset:{256 * i}")
    lines += ["s_mov_b64 exec, 1", f"v_mov_b32_e32 v101, 0x{_SCALARS_AT:x}"]
    for i, register in enumerate([84, 85, 86, 87, 88, 89, *snippet.read_sgprs]):
        lines.append(f"v_mov_b32_e32 v102, s{register}")
        lines.append(f"global_store_dword v101, v102, s[80:81] offset:{4 * i}")
    return Kernel(
        name,
        "\n".join(lines),
        lds_bytes=snippet.lds_bytes,
        ieee=snippet.ieee,
        dx10_clamp=snippet.dx10_clamp,
        float_denorm_mode_32=snippet.float_denorm_mode_32,
        float_denorm_mode_16_64=snippet.float_denorm_mode_16_64,
        scratch_bytes=snippet.scratch_bytes,
    )


def _input_block(snippet: Snippet) -> bytes:
    vgprs, sgprs = _inputs(snippet)
    rows = np.zeros(_SCALARS_AT // 4, np.uint32)
    for i, lanes in enumerate(vgprs.values()):
        rows[LANES * i : LANES * (i + 1)] = lanes
    fixed = struct.pack("<QQII", snippet.vcc, snippet.exec, snippet.m0, snippet.scc)
    return rows.tobytes() + fixed + struct.pack(f"<{len(sgprs)}I", *sgprs.values())


def _outcome(snippet: Snippet, block: NDArray[np.uint8], memory: bytes) -> Outcome:
    words = block.view(np.uint32)
    v = {r: words[LANES * i : LANES * (i + 1)].copy() for i, r in enumerate(snippet.read_vgprs)}
    scalars = words[_SCALARS_AT // 4 :]
    vcc, execution, m0, scc = struct.unpack("<QQII", scalars[:_FIXED_SCALARS].tobytes())
    s = {r: int(scalars[_FIXED_SCALARS + i]) for i, r in enumerate(snippet.read_sgprs)}
    return Outcome(v, s, vcc, execution, scc, m0, memory)


def run_snippets(hip: Hip, snippets: Sequence[Snippet]) -> list[Outcome | HipError]:
    """Runs each snippet on one wave of 64 lanes; a fault stands in place of its outcome."""
    names = [f"snippet_{i}" for i in range(len(snippets))]
    module = Module(hip, assemble([_snippet_kernel(n, s) for n, s in zip(names, snippets, strict=True)]))
    results: list[Outcome | HipError] = []
    largest = max((len(s.memory) for s in snippets), default=0)
    with (
        Buffer(hip, _BLOCK_BYTES) as source,
        Buffer(hip, _BLOCK_BYTES) as target,
        Buffer(hip, max(largest, 4)) as memory,
    ):
        arguments = struct.pack("<QQQ", source.address, target.address, memory.address)
        for name, snippet in zip(names, snippets, strict=True):
            source.write(_input_block(snippet))
            if snippet.memory:
                memory.write(snippet.memory)
            try:
                hip.launch(module.function(name), arguments)
            except HipError as fault:
                results.append(fault)
                continue
            after = memory.read().tobytes()[: len(snippet.memory)] if snippet.memory else b""
            results.append(_outcome(snippet, target.read(), after))
    module.unload()
    return results
