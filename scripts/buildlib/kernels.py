"""Builds the code objects: generate, compile for each arch, check, bundle, describe."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from buildlib.archs import target_archs
from buildlib.bundle import make_bundle
from buildlib.code_object import KernelResources, check_resources, read_resources, waves_per_simd
from buildlib.errors import BuildError
from buildlib.generate import write_bwd_table, write_fwd_table, write_instances, write_lds_report
from buildlib.instruction_mix import Instruction, InstructionMix, disassemble, inner_loop, loads_by_lanes
from buildlib.options import max_jobs, warning_flags
from buildlib.paths import BUILD, CSRC, GENERATED
from buildlib.stamp import Stamp, hash_inputs, source_files
from buildlib.tile_config import BwdKernel, FwdKernel, TileConfig, load_config
from buildlib.toolchain import (
    find_device_compiler,
    find_device_libs,
    find_host_compiler,
    find_linker,
    flags_for_older_compilers,
    hip_include_flags,
    is_older,
)

# With clang's default for amdhsa the element-wise path for unaligned rows is merged back into one
# dwordx4, which is right only where the driver has set the card to unaligned mode.
# Structurizing a branch that the whole wave takes alike makes its two sides exchange their registers
# through copies: 64 of them around the lazy rescale of O at D128, and 8 spills. Uniform branches need
# none of it, and all of ours that matter are.
_KEEP_UNIFORM_BRANCHES = ("-mllvm", "-structurizecfg-skip-uniform-regions")
_NO_UNALIGNED_ACCESS = ("-Xclang", "-target-feature", "-Xclang", "-unaligned-access-mode")

# gfx90a multiplies fp32 by pairs of registers (v_pk_fma_f32); what the compiler makes of that spills.
_NO_PAIRS = {"gfx90a": ("-fno-slp-vectorize",)}

# `flashattn-rocm profile` names source lines on the simulated card. The code is the same byte by byte;
# the compressed tables add a quarter to this arch's code object. No path of this machine goes in.
_SIMULATED_ARCH = "gfx906"
_LINE_TABLES = ("-gline-tables-only", "-gz", f"-ffile-prefix-map={CSRC.parent}=.")


@dataclass(frozen=True)
class CodeObject:
    """One arch's compiled kernels."""

    arch: str
    file: Path
    resources: Mapping[str, KernelResources]
    inner_loops: Mapping[str, InstructionMix]  # where llvm-objdump is installed


def build_kernels(lib: Path) -> tuple[str, ...]:
    """Writes kernels.hipfb and kernels.json to `lib`; compiles only what changed.

    Returns:
        The archs.

    Raises:
        BuildError: a tool is missing, or the sources, tiles or code objects break a rule.
    """
    archs = target_archs(os.environ)
    config = load_config(archs)
    fwd, bwd = config.fwd_kernels(), config.bwd_kernels()
    kernels: list[FwdKernel | BwdKernel] = [*fwd, *bwd]
    source = write_instances(GENERATED, kernels, attn_probs=True)
    write_fwd_table(GENERATED, fwd)
    write_bwd_table(GENERATED, bwd)
    lds_budget = _lds_budget(config)
    with ThreadPoolExecutor(max_jobs()) as pool:
        code_objects = list(
            pool.map(lambda arch: compile_kernels(arch, source, BUILD / "kernels" / arch), archs)
        )
    older = is_older(find_device_compiler())
    for code_object in code_objects:
        check_resources(code_object.arch, kernels, code_object.resources, lds_budget, older)
    lib.mkdir(parents=True, exist_ok=True)
    (lib / "kernels.hipfb").write_bytes(make_bundle({c.arch: c.file.read_bytes() for c in code_objects}))
    (lib / "kernels.json").write_text(json.dumps(_manifest(kernels, code_objects), indent=1) + "\n")
    return archs


def _say(text: str) -> None:
    print(text, flush=True)


def compile_command(arch: str, source: Path) -> list[str]:
    """The compiler's command line for a device source, without the output.

    Raises:
        BuildError: a tool is missing.
    """
    compiler = find_device_compiler()
    find_linker(compiler)
    return [
        compiler.path,
        *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}"),
        *("-O3", "-std=c++20", "-ffp-contract=off", "-mcode-object-version=5"),
        *_KEEP_UNIFORM_BRANCHES,
        *_NO_UNALIGNED_ACCESS,
        *flags_for_older_compilers(compiler),
        *_NO_PAIRS.get(arch, ()),
        *(_LINE_TABLES if arch == _SIMULATED_ARCH else ()),
        *warning_flags(),
        f"--rocm-device-lib-path={find_device_libs(compiler)}",
        *hip_include_flags(),
        *("-I", str(CSRC), str(source)),
    ]


def compile_kernels(arch: str, source: Path, folder: Path, say: Callable[[str], None] = _say) -> CodeObject:
    """Compiles a generated source to `folder`, unless nothing changed since it was.

    Args:
        arch: to compile for.
        source: of the device.
        folder: made if it is missing.
        say: gets the compiler's warnings and errors.

    Raises:
        BuildError: a tool is missing, or the compiler refuses the source, or makes wrong code of it.
    """
    command = compile_command(arch, source)
    file = folder / "kernels.co"
    stamp = Stamp(folder / "stamp", hash_device_inputs(command), [file])
    if not stamp.is_current():
        folder.mkdir(parents=True, exist_ok=True)
        say(f"compiling {source.name} for {arch}")
        run = subprocess.run([*command, "-o", str(file)], capture_output=True, text=True)
        if run.returncode != 0:
            say(run.stderr)
            raise BuildError(f"{command[0]} could not compile {source} for {arch}; its errors are above.")
        if "warning:" in run.stderr:
            say(run.stderr)
        stamp.write()
    code = disassemble(file, find_device_compiler())
    if is_older(find_device_compiler()):
        refuse_loads_by_lanes(arch, code)
    loops = {name: inner_loop(instructions) for name, instructions in code.items()}
    return CodeObject(
        arch=arch,
        file=file,
        resources=read_resources(file),
        inner_loops={name: loop for name, loop in loops.items() if loop is not None},
    )


def refuse_loads_by_lanes(arch: str, code: Mapping[str, Sequence[Instruction]]) -> None:
    """For older compilers, which put such a loop between a scalar comparison and its use: see is_older.

    Raises:
        BuildError: names the kernels that have one.
    """
    if broken := [name for name, instructions in code.items() if loads_by_lanes(instructions)]:
        raise BuildError(
            f"The compiler made loops of loads in {', '.join(broken)} ({arch}), whose results can be wrong: "
            "build with clang 18 or newer."
        )


def hash_device_inputs(command: Sequence[str]) -> str:
    """Of all that a code object follows from: the source, what it includes, the compiler and its options."""
    return hash_inputs(included_files(Path(command[-1])), [*command, find_device_compiler().text])


def included_files(source: Path) -> list[Path]:
    """A device source and all that it includes of ours, in csrc/."""
    found = [source]
    for file in found:
        names = re.findall(r'^#include "(.+)"', file.read_text(), re.MULTILINE)
        found += [path for name in names if (path := CSRC / name) not in found]
    return found


def _lds_budget(config: TileConfig) -> dict[str, int]:
    """LDS bytes of each kernel by core/lds_budget.h, asked of a small program that includes it."""
    source = write_lds_report(GENERATED, config.fwd_kernels(), config.bwd_kernels())
    program = BUILD / "kernels/lds_report"
    command = [find_host_compiler(), "-std=c++20", "-I", str(CSRC), str(source), "-o", str(program)]
    stamp = Stamp(
        BUILD / "kernels/lds_report.stamp",
        hash_inputs([source, *source_files(CSRC / "core")], command),
        [program],
    )
    if not stamp.is_current():
        program.parent.mkdir(parents=True, exist_ok=True)
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            print(run.stderr, flush=True)
            raise BuildError(f"{command[0]} could not compile core/lds_budget.h; its errors are above.")
        stamp.write()
    budget = {}
    for line in subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines():
        name, *numbers = line.split()
        q, kv, p, scales, limit = map(int, numbers)
        total, reserve = q + kv + p + scales, config.lds.reserve_bytes
        if total + reserve > limit:
            raise BuildError(
                f"{name} needs {total} bytes of LDS = Q {q} + KV {kv} + P {p} + scales {scales}; with the "
                f"reserve of {reserve} that is more than a workgroup's limit of {limit}: "
                "choose a smaller tile in configs/."
            )
        budget[name] = total
    return budget


def _manifest(
    kernels: Sequence[FwdKernel | BwdKernel], code_objects: Sequence[CodeObject]
) -> dict[str, object]:
    return {
        "compiler": find_device_compiler().text,
        "archs": {
            code_object.arch: [_describe(kernel, code_object) for kernel in kernels]
            for code_object in code_objects
        },
    }


def _describe(kernel: FwdKernel | BwdKernel, code_object: CodeObject) -> dict[str, object]:
    tile = kernel.tile
    found = code_object.resources[kernel.name]
    loop = code_object.inner_loops.get(kernel.name)
    return {
        "name": kernel.name,
        "element": kernel.element,
        **tile.model_dump(exclude={"why", "clocks", "split"}),
        "split": isinstance(kernel, FwdKernel) and kernel.split,
        "head_dim_v": tile.columns_v,
        "threads": found.threads,
        "lds_bytes": found.lds_bytes,
        "vgpr": found.vgprs,
        "sgpr": found.sgprs,
        "spills": found.vgpr_spills + found.sgpr_spills,
        "scratch": found.scratch_bytes,
        "occupancy_waves_per_simd": waves_per_simd(code_object.arch, found),
        "inner_loop": None if loop is None else loop.describe(),
    }
