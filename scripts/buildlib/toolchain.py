"""Finds the compilers, headers and libraries of a build, and says what to install where one is missing."""

import functools
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from buildlib.errors import BuildError
from buildlib.system_packages import LLVM_VERSIONS, how_to_install

_OLDEST_LLVM = 16
_OLDEST_SIMULATOR_LLVM = 17  # csrc/sim/CMakeLists.txt says why
_HIP_HEADER = "hip/hip_runtime.h"
_ABI_LIBRARY = "oclc_abi_version_500.bc"  # of code objects of version 5, which the kernels are compiled to


@dataclass(frozen=True)
class DeviceCompiler:
    """A clang that makes AMDGPU code objects."""

    path: str
    llvm_version: int
    text: str  # "clang version 19.1.7"


def rocm_path() -> Path:
    """The root of a ROCm installation; it need not exist."""
    return Path(os.environ.get("ROCM_PATH") or "/opt/rocm")


@functools.cache
def find_device_compiler() -> DeviceCompiler:
    """Searches HIPCC, CLANG, ROCm's clang, then clang++-N on PATH; takes the first that will do.

    Raises:
        BuildError: none is there, or all are too old or have no AMDGPU target.
    """
    refusals = []
    for path in _compiler_candidates():
        version = re.search(r"clang version (\d+)\S*", _output(path, "--version"))
        if version is None or int(version.group(1)) < _OLDEST_LLVM:
            refusals.append(f"{path} is {version.group(0) if version else 'no clang'}")
        elif "amdgcn" not in _output(path, "--print-targets"):
            refusals.append(f"{path} has no AMDGPU target")
        else:
            return DeviceCompiler(path, int(version.group(1)), version.group(0))
    searched = ", ".join(refusals) or f"searched HIPCC, CLANG, {rocm_path()}/llvm/bin and PATH"
    raise BuildError(
        f"The GPU code needs clang {_OLDEST_LLVM} or newer with the AMDGPU target, and none was found "
        f"({searched}): {how_to_install('compiler')}."
    )


def flags_for_older_compilers(compiler: DeviceCompiler) -> list[str]:
    """What keeps the kernels' arrays in registers where the compiler would not by itself.

    LLVM 16's inliner stops before the larger tiles' steps: their scores then lie in scratch (1408 bytes at
    128 x 64 x D128), and what is read back from it is no longer uniform. Newer ones inline them all.
    """
    return ["-mllvm", "-inline-threshold=100000"] if compiler.llvm_version < 17 else []


def is_older(compiler: DeviceCompiler) -> bool:
    """Whether a spill is the compiler's fault rather than the tile's.

    The tiles are cut for the register allocator of LLVM 18 and newer. With 16 two kernels of D80 spill 15
    registers, and two of the fp32 backward at D512 spill 27 and 47; that costs time alone.

    Nor do they keep SCC across the loop over lanes that they make of a load through a buffer whose
    description is in VGPRs (llvm-project#68363): a size chosen by a comparison before the loop came out as 0
    after it, and with it all that was read of V and dO, and dQ and dK of the fp32 backward. The kernels have
    no such loop, and a build that makes one is refused.
    """
    return compiler.llvm_version < 18


def find_linker(compiler: DeviceCompiler) -> str:
    """Returns the lld that the compiler will call.

    Raises:
        BuildError: there is none.
    """
    program = _output(compiler.path, "-print-prog-name=lld").strip()
    found = shutil.which(program)
    if found is None:
        raise BuildError(
            f"{compiler.path} has no lld to link GPU code with: "
            f"{how_to_install('linker', compiler.llvm_version)}."
        )
    return found


def find_offload_bundler(compiler: DeviceCompiler) -> str:
    """Returns the clang-offload-bundler that the compiler calls for whole HIP programs, as tests have them.

    Raises:
        BuildError: there is none.
    """
    found = shutil.which(_output(compiler.path, "-print-prog-name=clang-offload-bundler").strip())
    if found is None:
        raise BuildError(
            f"{compiler.path} has no clang-offload-bundler for the tests' HIP programs: "
            f"{how_to_install('offload-bundler', compiler.llvm_version)}."
        )
    return found


def find_objdump(compiler: DeviceCompiler) -> str:
    """The llvm-objdump that belongs to the compiler; it need not exist."""
    return _output(compiler.path, "-print-prog-name=llvm-objdump").strip()


def find_device_libs(compiler: DeviceCompiler) -> Path:
    """Returns the folder of ROCm's device libraries (ocml.bc and others).

    Raises:
        BuildError: there is none that suits the compiler.
    """
    folders = [folder for folder in _device_lib_candidates(compiler) if (folder / "ocml.bc").is_file()]
    for folder in folders:
        if (folder / _ABI_LIBRARY).is_file():
            return folder
    if folders:
        raise BuildError(
            f"ROCm's device libraries in {folders[0]} are older than ROCm 5.2 ({_ABI_LIBRARY} is missing): "
            "upgrade the distribution, or build in a ROCm image."
        )
    raise BuildError(
        f"ROCm's device libraries (ocml.bc) were not found: "
        f"{how_to_install('device-libs', compiler.llvm_version)}."
    )


def hip_include_flags() -> list[str]:
    """Returns the flags that make hip/hip_runtime.h visible.

    Raises:
        BuildError: HIP's headers are not installed.
    """
    if (rocm_path() / "include" / _HIP_HEADER).is_file():
        return ["-isystem", str(rocm_path() / "include")]
    if (Path("/usr/include") / _HIP_HEADER).is_file():
        return []  # searched anyway; naming it would reorder libstdc++'s include_next
    raise BuildError(f"HIP's headers ({_HIP_HEADER}) were not found: {how_to_install('hip-headers')}.")


def find_host_compiler() -> str:
    """Returns CXX, or the system's C++ compiler.

    Raises:
        BuildError: there is none.
    """
    asked = os.environ.get("CXX")
    found = shutil.which(asked) if asked else shutil.which("c++") or shutil.which("g++")
    if found is None:
        what = f"CXX={asked} was not found; unset it, or" if asked else "No C++ compiler was found:"
        raise BuildError(f"{what} {how_to_install('host-compiler')}.")
    return found


def check_python_headers() -> None:
    """Raises BuildError if Python.h is missing."""
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").is_file():
        raise BuildError(f"Python.h was not found in {include}: {how_to_install('python-headers')}.")


def find_cmake() -> str:
    """Returns cmake, which builds the simulator.

    Raises:
        BuildError: there is none.
    """
    found = shutil.which("cmake")
    if found is None:
        raise BuildError(
            f"The simulator is built with cmake, which was not found: {how_to_install('cmake')}."
        )
    return found


def find_llvm_cmake_dir() -> Path:
    """Returns the folder of LLVMConfig.cmake: of LLVM_DIR, else of the device compiler's version first.

    Raises:
        BuildError: there is none of LLVM 17 or newer.
    """
    if asked := os.environ.get("LLVM_DIR"):
        return Path(asked)
    version = find_device_compiler().llvm_version
    versions = [v for v in dict.fromkeys((version, *LLVM_VERSIONS)) if v >= _OLDEST_SIMULATOR_LLVM]
    roots = [Path(f"/usr/lib/llvm-{v}") for v in versions] + [rocm_path() / "llvm"]
    for root in roots:
        if (root / "lib/cmake/llvm/LLVMConfig.cmake").is_file():
            return root / "lib/cmake/llvm"
    raise BuildError(f"The simulator needs LLVM's headers: {how_to_install('llvm', _if_packaged(version))}.")


def _if_packaged(version: int) -> int | None:
    """ROCm's clang can be of a version that no distribution packages; then any will do."""
    return version if version in LLVM_VERSIONS and version >= _OLDEST_SIMULATOR_LLVM else None


def _compiler_candidates() -> list[str]:
    for variable in ("HIPCC", "CLANG"):
        if asked := os.environ.get(variable):
            found = shutil.which(asked)
            if found is None:
                raise BuildError(
                    f"{variable}={asked} was not found; unset it or name clang {_OLDEST_LLVM} or newer."
                )
            return [found]  # an override is taken or refused, never replaced
    names = [str(rocm_path() / "llvm/bin/clang++"), *(f"clang++-{v}" for v in LLVM_VERSIONS), "clang++"]
    return [found for name in names if (found := shutil.which(name))]


def _device_lib_candidates(compiler: DeviceCompiler) -> Iterator[Path]:
    if asked := os.environ.get("HIP_DEVICE_LIB_PATH"):
        yield Path(asked)
    yield rocm_path() / "amdgcn/bitcode"
    resource = Path(_output(compiler.path, "-print-resource-dir").strip())
    yield resource / "lib/amdgcn/bitcode"
    yield resource / "amdgcn/bitcode"
    yield Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
    for version in range(compiler.llvm_version, _OLDEST_LLVM - 1, -1):
        for clang in (f"clang/{version}", f"llvm-{version}/lib/clang/{version}"):
            yield Path("/usr/lib") / clang / "amdgcn/bitcode"
            yield Path("/usr/lib") / clang / "lib/amdgcn/bitcode"


@functools.cache
def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True).stdout
