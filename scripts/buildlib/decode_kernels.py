"""Builds the kernels that work on a KV cache: their own code object, so that they compile alone."""

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from buildlib.archs import target_archs
from buildlib.bundle import make_bundle
from buildlib.code_object import KernelResources, waves_per_simd, workgroups_per_cu
from buildlib.errors import BuildError
from buildlib.generate import write_decode_instances, write_decode_table
from buildlib.kernels import CodeObject, compile_kernels
from buildlib.options import max_jobs
from buildlib.paths import BUILD, GENERATED
from buildlib.tile_config import DecodeKernel, load_config
from buildlib.toolchain import find_device_compiler

_TUNED_FOR = "gfx906"


def build_decode_kernels(lib: Path) -> None:
    """Writes decode.hipfb and decode.json to `lib`; compiles only what changed.

    Raises:
        BuildError: a tool is missing, or the sources, tiles or code objects break a rule.
    """
    archs = target_archs(os.environ)
    kernels = load_config(archs).decode_kernels()
    source = write_decode_instances(GENERATED, kernels)
    write_decode_table(GENERATED, kernels)
    with ThreadPoolExecutor(max_jobs()) as pool:
        code_objects = list(
            pool.map(lambda arch: compile_kernels(arch, source, BUILD / "decode" / arch), archs)
        )
    for code_object in code_objects:
        check_decode_resources(code_object.arch, kernels, code_object.resources)
    lib.mkdir(parents=True, exist_ok=True)
    (lib / "decode.hipfb").write_bytes(make_bundle({c.arch: c.file.read_bytes() for c in code_objects}))
    manifest = {
        "compiler": find_device_compiler().text,
        "archs": {c.arch: [_describe(name, c) for name in c.resources] for c in code_objects},
    }
    (lib / "decode.json").write_text(json.dumps(manifest, indent=1) + "\n")


def check_decode_resources(
    arch: str, kernels: Sequence[DecodeKernel], resources: Mapping[str, KernelResources]
) -> None:
    """Refuses spills, scratch, and on the arch that the rows are for another occupancy than they claim.

    Raises:
        BuildError: names each kernel that breaks a rule, with its numbers.
    """
    faults = []
    for name, found in resources.items():
        if found.vgpr_spills or found.sgpr_spills or found.scratch_bytes:
            faults.append(
                f"{name} has {found.vgpr_spills} VGPR spills, {found.sgpr_spills} SGPR spills and "
                f"{found.scratch_bytes} bytes of scratch, must be 0"
            )
    for kernel in kernels:
        if kernel.name not in resources:
            faults.append(f"{kernel.name} is not in the code object")
        elif arch == _TUNED_FOR and kernel.element == "f16":
            fits = workgroups_per_cu(arch, kernel.tile, resources[kernel.name])
            if fits != kernel.tile.workgroups_per_cu:
                faults.append(
                    f"{kernel.name}: workgroups_per_cu is {fits}, must be {kernel.tile.workgroups_per_cu} "
                    f"({resources[kernel.name].vgprs} VGPRs)"
                )
    if faults:
        raise BuildError(f"The code object for {arch} breaks the build's rules: {'; '.join(faults)}.")


def _describe(name: str, code_object: CodeObject) -> dict[str, object]:
    found = code_object.resources[name]
    return {
        "name": name,
        "threads": found.threads,
        "lds_bytes": found.lds_bytes,
        "vgpr": found.vgprs,
        "sgpr": found.sgprs,
        "spills": found.vgpr_spills + found.sgpr_spills,
        "scratch": found.scratch_bytes,
        "occupancy_waves_per_simd": waves_per_simd(code_object.arch, found),
    }
