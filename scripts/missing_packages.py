"""Prints the packages of this distribution that a build still needs, one line, for scripts/setup.sh.

    python3 scripts/missing_packages.py [--no-simulator] [--explain]

Uses the standard library only. Exits with one sentence if the distribution offers no package.
"""

import argparse
import importlib.util
import shutil
import sys
from collections.abc import Callable

from buildlib import toolchain
from buildlib.errors import BuildError
from buildlib.system_packages import package_for

Check = Callable[[], object]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Name the distribution packages that are missing.")
    parser.add_argument("--no-simulator", action="store_true", help="leave out what only the simulator needs")
    parser.add_argument("--explain", action="store_true", help="print the first thing missing, as a sentence")
    options = parser.parse_args()
    missing = []
    for component, check in _checks(not options.no_simulator).items():
        try:
            check()
        except BuildError as error:
            if options.explain:
                print(error)
                return
            package = package_for(component, _llvm_version())
            if package is None:
                sys.exit(str(error))
            missing.append(package)
    print(" ".join(missing))


def _llvm_version() -> int | None:
    try:
        return toolchain.find_device_compiler().llvm_version
    except BuildError:
        return None


def _checks(simulator: bool) -> dict[str, Check]:
    checks: dict[str, Check] = {
        "compiler": toolchain.find_device_compiler,
        "linker": lambda: toolchain.find_linker(toolchain.find_device_compiler()),
        "device-libs": lambda: toolchain.find_device_libs(toolchain.find_device_compiler()),
        "hip-headers": toolchain.hip_include_flags,
        "host-compiler": toolchain.find_host_compiler,
        "ninja": lambda: _on_path("ninja"),
        "python-venv": lambda: _importable("ensurepip"),
        "python-headers": toolchain.check_python_headers,
    }
    if simulator:
        checks["offload-bundler"] = lambda: toolchain.find_offload_bundler(toolchain.find_device_compiler())
        checks["cmake"] = toolchain.find_cmake
        checks["llvm"] = toolchain.find_llvm_cmake_dir
    return checks


def _on_path(program: str) -> None:
    if shutil.which(program) is None:
        raise BuildError(f"{program} was not found on PATH.")


def _importable(module: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise BuildError(f"Python has no module {module}, which makes virtual environments.")


if __name__ == "__main__":
    main()
