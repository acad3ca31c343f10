"""The ctypes view of HIP on a runtime that is not the simulator, as the rival is launched on a card."""

import ctypes
import shutil
import subprocess

import pytest

from flashattn_rocm.sim.hip import Hip, HipError

RUNTIME = r"""
void* stream; int launches, waits;
int hipInit(unsigned f) { return 0; }
const char* hipGetErrorName(int e) { return e == 209 ? "hipErrorNoBinaryForGpu" : "?"; }
int hipModuleLoadData(void** m, const void* d) { return 209; }
int hipDeviceSynchronize(void) { ++waits; return 0; }
int hipModuleLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned lds, void* s, void** params, void** extra) {
  ++launches; stream = s; return 0;
}
"""


@pytest.fixture
def runtime(tmp_path):
    """A HIP runtime that notes launches, and the same library to read the notes from."""
    compiler = shutil.which("cc") or shutil.which("clang-19")
    source = tmp_path / "hip.c"
    source.write_text(RUNTIME)
    library = tmp_path / "libamdhip64.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", source, "-o", library], check=True)
    return Hip(library), ctypes.CDLL(str(library))


def test_a_launch_into_a_stream_does_not_wait(runtime):
    hip, notes = runtime
    hip.launch(ctypes.c_void_p(1), b"", stream=0x1234)
    assert ctypes.c_void_p.in_dll(notes, "stream").value == 0x1234
    assert ctypes.c_int.in_dll(notes, "waits").value == 0
    hip.launch(ctypes.c_void_p(1), b"")
    assert ctypes.c_void_p.in_dll(notes, "stream").value is None
    assert ctypes.c_int.in_dll(notes, "waits").value == 1


def test_an_error_has_hip_s_name(runtime):
    with pytest.raises(HipError, match="hipModuleLoadData failed: hipErrorNoBinaryForGpu"):
        runtime[0].call("hipModuleLoadData", 0, b"")
