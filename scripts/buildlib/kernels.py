"""Builds the code objects: generate, compile for each arch, check, bundle, describe."""

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from buildlib.archs import target_archs
from buildlib.bundle import make_bundle
from buildlib.code_object import KernelResources, check_resources, read_resources
from buildlib.errors import BuildError
from buildlib.generate import write_fwd_instances, write_fwd_table, write_lds_report
from buildlib.options import max_jobs, warning_flags
from buildlib.paths import BUILD, CSRC, GENERATED
from buildlib.stamp import Stamp, hash_inputs, source_files
from buildlib.tile_config import FwdKernel, TileConfig, load_config
from buildlib.toolchain import (
    find_device_compiler,
    find_device_libs,
    find_host_compiler,
    find_linker,
    hip_include_flags,
)

_DEVICE_FOLDERS = ("core", "gcn", "attention", "kernels")

# With clang's default for amdhsa the element-wise path for unaligned rows is merged back into one
# dwordx4, which is right only where the driver has set the card to unaligned mode.
# Structurizing a branch that the whole wave takes alike makes its two sides exchange their registers
# through copies: 64 of them around the lazy rescale of O at D128, and 8 spills. Uniform branches need
# none of it, and all of ours that matter are.
_KEEP_UNIFORM_BRANCHES = ("-mllvm", "-structurizecfg-skip-uniform-regions")
_NO_UNALIGNED_ACCESS = ("-Xclang", "-target-feature", "-Xclang", "-unaligned-access-mode")

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
    occupancy: Mapping[str, int]  # waves a SIMD can hold at once, as the compiler counts them


def build_kernels(lib: Path) -> tuple[str, ...]:
    """Writes kernels.hipfb and kernels.json to `lib`; compiles only what changed.

    Returns:
        The archs.

    Raises:
        BuildError: a tool is missing, or the sources, tiles or code objects break a rule.
    """
    archs = target_archs(os.environ)
    config = load_config(archs)
    kernels = config.fwd_kernels()
    source = write_fwd_instances(GENERATED, kernels)
    write_fwd_table(GENERATED, kernels)
    lds_budget = _lds_budget(config)
    commands = {arch: _compile_command(arch, source) for arch in archs}
    with ThreadPoolExecutor(max_jobs()) as pool:
        code_objects = list(pool.map(_compile, archs, commands.values()))
    for code_object in code_objects:
        check_resources(code_object.arch, kernels, code_object.resources, lds_budget)
    lib.mkdir(parents=True, exist_ok=True)
    (lib / "kernels.hipfb").write_bytes(make_bundle({c.arch: c.file.read_bytes() for c in code_objects}))
    (lib / "kernels.json").write_text(json.dumps(_manifest(kernels, code_objects), indent=1) + "\n")
    return archs


def _compile_command(arch: str, source: Path) -> list[str]:
    compiler = find_device_compiler()
    find_linker(compiler)
    return [
        compiler.path,
        *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", f"--offload-arch={arch}"),
        *("-O3", "-std=c++20", "-ffp-contract=off", "-mcode-object-version=5"),
        *_KEEP_UNIFORM_BRANCHES,
        *_NO_UNALIGNED_ACCESS,
        *(_LINE_TABLES if arch == _SIMULATED_ARCH else ()),
        *warning_flags(),
        "-Rpass-analysis=kernel-resource-usage",
        f"--rocm-device-lib-path={find_device_libs(compiler)}",
        *hip_include_flags(),
        *("-I", str(CSRC), str(source)),
    ]


def _compile(arch: str, command: Sequence[str]) -> CodeObject:
    folder = BUILD / "kernels" / arch
    file, remarks = folder / "kernels.co", folder / "resources.txt"
    inputs = [Path(command[-1]), *source_files(*(CSRC / name for name in _DEVICE_FOLDERS))]
    stamp = Stamp(
        folder / "stamp", hash_inputs(inputs, [*command, find_device_compiler().text]), [file, remarks]
    )
    if not stamp.is_current():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"compiling the kernels for {arch}", flush=True)
        run = subprocess.run([*command, "-o", str(file)], capture_output=True, text=True)
        if run.returncode != 0:
            print(run.stderr, flush=True)
            raise BuildError(f"{command[0]} could not compile the kernels for {arch}; its errors are above.")
        if "warning:" in run.stderr:
            print(run.stderr, flush=True)
        remarks.write_text(run.stderr)
        stamp.write()
    return CodeObject(arch, file, read_resources(file), _occupancy(remarks.read_text()))


def _occupancy(remarks: str) -> dict[str, int]:
    found = re.findall(r"Function Name: (\S+).*?Occupancy \[waves/SIMD\]: (\d+)", remarks, re.DOTALL)
    return {name: int(waves) for name, waves in found}


def _lds_budget(config: TileConfig) -> dict[str, int]:
    """LDS bytes of each kernel by core/lds_budget.h, asked of a small program that includes it."""
    source = write_lds_report(GENERATED, config.fwd_kernels(), config.lds.reserve_bytes)
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
        name, lds_bytes, fits = line.split()
        if fits != "1":
            raise BuildError(
                f"{name} needs {lds_bytes} bytes of LDS, which with the reserve of "
                f"{config.lds.reserve_bytes} is more than a workgroup has: choose a smaller tile in configs/."
            )
        budget[name] = int(lds_bytes)
    return budget


def _manifest(kernels: Sequence[FwdKernel], code_objects: Sequence[CodeObject]) -> dict[str, object]:
    return {
        "compiler": find_device_compiler().text,
        "archs": {
            code_object.arch: [_describe(kernel, code_object) for kernel in kernels]
            for code_object in code_objects
        },
    }


def _describe(kernel: FwdKernel, code_object: CodeObject) -> dict[str, object]:
    tile = kernel.tile
    found = code_object.resources[kernel.name]
    return {
        "name": kernel.name,
        "element": kernel.element,
        **tile.model_dump(exclude={"why", "clocks"}),
        "head_dim_v": tile.columns_v,
        "threads": found.threads,
        "lds_bytes": found.lds_bytes,
        "vgpr": found.vgprs,
        "sgpr": found.sgprs,
        "spills": found.vgpr_spills + found.sgpr_spills,
        "scratch": found.scratch_bytes,
        "occupancy_waves_per_simd": code_object.occupancy[kernel.name],
    }
