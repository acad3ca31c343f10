"""Builds flashattn_rocm._C: plain host C++ against the torch of the environment, CPU or ROCm."""

import importlib.util
import runpy
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from buildlib.errors import BuildError
from buildlib.options import warning_flags
from buildlib.paths import BUILD, CSRC, GENERATED, ROOT
from buildlib.toolchain import check_python_headers, find_host_compiler

_OLDEST_TORCH = (2, 7)  # c10::Stream::native_handle


def torch_hip_version() -> str | None:
    """The HIP version that torch was built for; None for another torch. Does not import torch.

    Raises:
        BuildError: torch is not installed, or older than 2.7.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise BuildError(
            "torch is not visible to this build: install torch 2.7 or newer (its ROCm build for a card), "
            "then build with `pip install --no-build-isolation .`, which builds against it."
        )
    facts = runpy.run_path(str(Path(spec.origin).with_name("version.py")))
    version = str(facts["__version__"])
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_TORCH:
        raise BuildError(f"torch {version} is too old: flashattn_rocm needs torch 2.7 or newer.")
    return facts.get("hip")


def build_extension(command: build_ext, hip_version: str | None) -> None:
    """Compiles and links the extension to where `command` would put it.

    Raises:
        BuildError: a compiler or header is missing.
    """
    find_host_compiler()
    check_python_headers()
    from torch.utils.cpp_extension import BuildExtension, CppExtension, include_paths

    command.distribution.ext_modules = [
        CppExtension(
            "flashattn_rocm._C",
            sources=_sources(),
            include_dirs=[str(CSRC), str(GENERATED)],
            define_macros=[("FLASHATTN_ROCM_TORCH_HIP", "1")] if hip_version else [],
            extra_compile_args=[
                *("-O3", "-std=c++20", "-fvisibility=hidden", "-g0"),  # CPython's own flags can hold -g
                *warning_flags(),
                *(f"-isystem{path}" for path in include_paths()),  # no warnings for torch's own headers
            ],
        )
    ]
    builder = BuildExtension(command.distribution)
    for option in ("build_lib", "inplace", "force", "debug", "editable_mode"):
        setattr(builder, option, getattr(command, option))
    builder.build_temp = str(BUILD / "extension")  # pip's is temporary, and ninja would start from nothing
    builder.ensure_finalized()
    builder.run()


def extension_placeholder() -> Extension:
    """Tells setuptools that the wheel holds an extension, before torch or a compiler is looked at."""
    return Extension("flashattn_rocm._C", sources=[])


def _sources() -> list[str]:
    files = [*(CSRC / "runtime").glob("*.cpp"), *(CSRC / "ops").glob("*.cpp")]
    return sorted(str(file.relative_to(ROOT)) for file in files)
