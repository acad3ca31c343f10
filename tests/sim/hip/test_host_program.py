"""A host-compiled HIP program: registration, <<<>>> launches, symbols and the older property struct."""

import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "programs" / "vector_add.hip"
DEVICE_LIBS = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")


@pytest.fixture(scope="module")
def vector_add(clang, tool, tmp_path_factory):
    """Compiles the program against the simulator's library and the installed HIP headers."""
    output = tmp_path_factory.mktemp("program") / "vector_add"
    device_libs = [f"--rocm-device-lib-path={DEVICE_LIBS}"] if DEVICE_LIBS.is_dir() else []
    subprocess.run(
        [
            *(clang, "-x", "hip", "--offload-arch=gfx906", "-O2", "-std=c++17", *device_libs, str(PROGRAM)),
            *("-x", "none", f"-L{tool.parent}", "-lamdhip64", "-o", str(output)),
        ],
        check=True,
    )
    return output


@pytest.fixture(scope="module")
def finished(vector_add, run_program):
    return run_program(vector_add)


def test_program_adds_vectors(finished):
    assert finished.status == 0, finished.err
    first, second = finished.out.splitlines()[:2]
    assert second == "up to 1024 threads, 0 bytes of static LDS, symbol of 4 bytes holds 1"
    assert first == "AMD Instinct MI50 (simulated): 60 CUs, block 256, 0 wrong of 1000, finished 1"


def test_fault_of_a_launch_is_its_last_error_and_goes_to_stderr(finished):
    assert finished.out.splitlines()[2:] == ["null write: hipErrorLaunchFailure", "afterwards: hipSuccess"]
    assert "write_null" in finished.err


def test_log_can_be_silenced(vector_add, run_program):
    assert run_program(vector_add, FLASHATTN_SIM_LOG="0").err == ""


def test_program_without_code_for_the_card_says_so(clang, tool, run_program, tmp_path):
    program = tmp_path / "other_card"
    device_libs = [f"--rocm-device-lib-path={DEVICE_LIBS}"] if DEVICE_LIBS.is_dir() else []
    subprocess.run(
        [
            *(clang, "-x", "hip", "--offload-arch=gfx908", "-O2", "-std=c++17", *device_libs, str(PROGRAM)),
            *("-x", "none", f"-L{tool.parent}", "-lamdhip64", "-o", str(program)),
        ],
        check=True,
    )
    done = run_program(program, FLASHATTN_SIM_LOG="2")
    assert done.status == 1
    assert "no kernel image is available" in done.err
    assert "the bundle holds: gfx908; compile with --offload-arch=gfx906" in done.err
