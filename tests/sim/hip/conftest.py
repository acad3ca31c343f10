"""Fixtures of the facade's tests: programs that use HIP, run as processes of their own.

The processes find the simulator as any HIP program would, through LD_LIBRARY_PATH, which the dynamic
loader reads only when a process starts.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from flashattn_rocm.sim.hip import simulator_library

SIM = simulator_library().parent
PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Run:
    """What a finished process left."""

    status: int
    out: str
    err: str


def run_process(*command: str | Path, **environment: str) -> Run:
    """Runs a program against the simulator."""
    env = os.environ | {"LD_LIBRARY_PATH": str(SIM), "FLASHATTN_SIM_LOG": "1"} | environment
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=120)
    return Run(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def run_program() -> Callable[..., Run]:
    return run_process


@pytest.fixture(scope="session")
def tool() -> Path:
    return SIM / "flashattn-sim"


@pytest.fixture(scope="session")
def run_python() -> Callable[..., str]:
    """Runs programs/NAME.py with arguments; returns its output, fails the test if it fails."""

    def run(name: str, *arguments: str | Path, **environment: str) -> str:
        done = run_process(sys.executable, PROGRAMS / f"{name}.py", *arguments, **environment)
        assert done.status == 0, f"{name}.py exited with {done.status}\n{done.out}\n{done.err}"
        return done.out

    return run


@pytest.fixture(scope="session")
def clang() -> str:
    for name in ("clang++-19", "clang++-18", "clang++-17", "/opt/rocm/llvm/bin/clang++", "clang++"):
        if found := shutil.which(name):
            return found
    pytest.fail("no clang++ with the AMDGPU target on PATH (package clang-19)")


@pytest.fixture(scope="session")
def compile_hip(clang: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles programs/NAME.hip to a code object; more options may be given."""

    def compile_(name: str, *options: str) -> Path:
        output = tmp_path_factory.mktemp("hip") / f"{name}.co"
        subprocess.run(
            [
                *(
                    clang,
                    "-x",
                    "hip",
                    "--cuda-device-only",
                    "--no-gpu-bundle-output",
                    "-nogpuinc",
                    "-nogpulib",
                ),
                *("--offload-arch=gfx906", "-O2", "-std=c++20", "-ffp-contract=off", *options),
                *(str(PROGRAMS / f"{name}.hip"), "-o", str(output)),
            ],
            check=True,
        )
        return output

    return compile_


@pytest.fixture(scope="session")
def kernels(compile_hip: Callable[..., Path]) -> Path:
    """The code object of programs/kernels.hip."""
    return compile_hip("kernels")
