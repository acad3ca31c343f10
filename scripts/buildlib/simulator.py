"""Builds the simulator, a libamdhip64 that runs code objects on the CPU, by cmake."""

import json
import os
import shutil
import subprocess
from pathlib import Path

from buildlib.errors import BuildError
from buildlib.options import max_jobs, warnings_are_errors
from buildlib.paths import BUILD, CSRC
from buildlib.tile_config import load_config
from buildlib.toolchain import find_cmake, find_device_compiler, find_host_compiler, find_llvm_cmake_dir


def build_simulator(lib: Path) -> None:
    """Installs the simulator to `lib`/sim; ninja compiles only what changed.

    Raises:
        BuildError: a tool is missing, or a step fails.
    """
    cmake, tree = find_cmake(), BUILD / "sim"
    configure = [
        *(cmake, "-S", str(CSRC / "sim"), "-B", str(tree), "-DCMAKE_BUILD_TYPE=Release"),
        f"-DCMAKE_CXX_COMPILER={_compiler()}",
        f"-DLLVM_DIR={find_llvm_cmake_dir()}",
        f"-DFLASHATTN_SIM_WERROR={'ON' if warnings_are_errors() else 'OFF'}",
    ]
    if shutil.which("ninja") and not (tree / "Makefile").is_file():
        configure += ["-G", "Ninja"]
    _run("configure", configure)
    _run("compile", [cmake, "--build", str(tree), "--parallel", str(max_jobs())])
    _run("install", [cmake, "--install", str(tree), "--prefix", str(lib / "sim")])
    facts = load_config(("gfx906",)).card_facts()
    (lib / "sim" / "cards.json").write_text(json.dumps(facts, indent=1) + "\n")


def _compiler() -> str:
    """The clang of the kernels unless CXX asks for another: its code runs the kernels faster than g++'s."""
    compiler = find_device_compiler().path
    is_clang = "clang" in Path(compiler).name
    return compiler if is_clang and not os.environ.get("CXX") else find_host_compiler()


def _run(step: str, command: list[str]) -> None:
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode != 0:
        print(run.stdout, flush=True)
        raise BuildError(f"The simulator failed to {step} (`{' '.join(command)}`); its errors are above.")
