"""What a code object says of its kernels, and the checks that a build must pass."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgpack
from elftools.elf.elffile import ELFFile

from buildlib.errors import BuildError
from buildlib.tile_config import BwdKernel, DecodeTile, FwdKernel, TileShape

_SIMDS = 4  # of a compute unit
_WAVE_SIZE = 64
_LDS_BYTES_PER_CU = 65536
_WAVES_BY_SGPRS = ((80, 10), (88, 9), (100, 8))  # SGPRs up to which a SIMD holds so many waves
_TUNED_FOR = "gfx906"  # whose occupancy the rows claim, with the first of their elements

_NT_AMDGPU_METADATA = 32  # LLVM's AMDGPU usage guide, "Code Object V3 and Above Note Records"


@dataclass(frozen=True)
class KernelResources:
    """Resources of one kernel, from the metadata note of its code object."""

    vgprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    scratch_bytes: int
    lds_bytes: int
    threads: int


def read_resources(file: Path) -> dict[str, KernelResources]:
    """Returns the resources of each kernel by name.

    Raises:
        BuildError: the file holds no AMDGPU metadata.
    """
    return {
        kernel[".name"]: KernelResources(
            vgprs=kernel[".vgpr_count"] + kernel.get(".agpr_count", 0),
            sgprs=kernel[".sgpr_count"],
            vgpr_spills=kernel[".vgpr_spill_count"],
            sgpr_spills=kernel[".sgpr_spill_count"],
            scratch_bytes=kernel[".private_segment_fixed_size"],
            lds_bytes=kernel[".group_segment_fixed_size"],
            threads=kernel[".max_flat_workgroup_size"],
        )
        for kernel in _metadata(file)["amdhsa.kernels"]
    }


def _metadata(file: Path) -> dict:
    with file.open("rb") as stream:
        for segment in ELFFile(stream).iter_segments("PT_NOTE"):
            for note in segment.iter_notes():
                if note["n_name"] == "AMDGPU" and note["n_type"] == _NT_AMDGPU_METADATA:
                    return msgpack.unpackb(note["n_desc"])
    raise BuildError(f"{file} holds no AMDGPU metadata; the compiler made no code object for HSA.")


def workgroups_per_cu(arch: str, tile: TileShape | DecodeTile, found: KernelResources) -> int:
    """How many workgroups of a kernel fit a compute unit by registers and LDS.

    LLVM's AMDGPU usage guide: registers are given to a wave in steps of 4 (gfx90a: 8, of 512), LDS to a
    workgroup in steps of 512 bytes.
    """
    return min(_waves_by_vgprs(arch, found) * _SIMDS // tile.waves, _workgroups_by_lds(found))


def waves_per_simd(arch: str, found: KernelResources) -> int:
    """Waves of a kernel that a SIMD can hold at once, by registers and LDS, as LLVM counts them.

    From LLVM 21 on the compiler's remarks give them as a formula of symbols.
    """
    by_sgprs = next((waves for most, waves in _WAVES_BY_SGPRS if found.sgprs <= most), 7)
    waves_per_group = found.threads // _WAVE_SIZE
    by_lds = -(-_workgroups_by_lds(found) * waves_per_group // _SIMDS)
    return min(_waves_by_vgprs(arch, found), by_sgprs, by_lds)


def _waves_by_vgprs(arch: str, found: KernelResources) -> int:
    registers, step, most = (512, 8, 8) if arch == "gfx90a" else (256, 4, 10)
    return min(most, registers // _round_up(max(found.vgprs, 1), step))


def _workgroups_by_lds(found: KernelResources) -> int:
    return _LDS_BYTES_PER_CU // _round_up(max(found.lds_bytes, 1), 512)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def check_resources(
    arch: str,
    kernels: Sequence[FwdKernel | BwdKernel],
    resources: Mapping[str, KernelResources],
    lds_budget: Mapping[str, int],
    older_compiler: bool = False,
) -> None:
    """Refuses what the compiler accepts in silence: spills, scratch, unplanned LDS, another workgroup.

    Args:
        arch: of the code object.
        kernels: that it should hold.
        resources: what it says of them, by name.
        lds_budget: bytes that each may take, by name.
        older_compiler: the tiles were not cut for it, so kernels that spill or leave room for fewer
            workgroups, which costs time alone, are named on stderr. Scratch for anything else is refused.

    Raises:
        BuildError: names each kernel that breaks a rule, with its numbers.
    """
    faults = []
    for name, found in resources.items():
        if older_compiler and _only_spills(found):
            if found.scratch_bytes:
                _name_slow(arch, name, f"spills {found.vgpr_spills} registers")
            continue
        rules = {
            "vgpr_spill_count": found.vgpr_spills,
            "sgpr_spill_count": found.sgpr_spills,
            "private_segment_fixed_size": found.scratch_bytes,
        }
        faults += [
            f"{name}: {rule} is {has}, must be 0 ({found.vgprs} VGPRs, {found.sgprs} SGPRs)"
            for rule, has in rules.items()
            if has != 0
        ]
    for kernel in kernels:
        if kernel.name not in resources:
            faults.append(f"{kernel.name} is not in the code object")
            continue
        found = resources[kernel.name]
        expected = {
            "group_segment_fixed_size": (found.lds_bytes, lds_budget[kernel.name]),
            "max_flat_workgroup_size": (found.threads, kernel.tile.threads),
        }
        if arch == _TUNED_FOR and kernel.element == kernel.tile.elements[0]:
            fits, claimed = workgroups_per_cu(arch, kernel.tile, found), kernel.tile.workgroups_per_cu
            if older_compiler and fits != claimed:
                _name_slow(arch, kernel.name, f"has room for {fits} workgroups a CU in place of {claimed}")
            else:
                expected["workgroups_per_cu"] = (fits, claimed)
        broken = [f"{rule} is {has}, must be {must}" for rule, (has, must) in expected.items() if has != must]
        if broken:
            faults.append(f"{kernel.name}: {', '.join(broken)} ({found.vgprs} VGPRs, {found.sgprs} SGPRs)")
    if faults:
        raise BuildError(f"The code object for {arch} breaks the build's rules: {'; '.join(faults)}.")


def _name_slow(arch: str, kernel: str, what: str) -> None:
    print(
        f"{kernel} ({arch}) {what} with this compiler, and is slower than with clang 18 or newer.",
        file=sys.stderr,
    )


def _only_spills(found: KernelResources) -> bool:
    """Whether all scratch is for spilled registers, 4 bytes each, and none for an array."""
    return found.scratch_bytes <= 4 * found.vgpr_spills + 16
