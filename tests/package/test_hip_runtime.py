"""The HIP function table against a real libamdhip64, and what is said without a card."""

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from flashattn_rocm import _C, flash_attn_func

# Debian's libamdhip64-5, which installs without a card, or whatever HIP the machine has.
CANDIDATES = (
    "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5",
    "/opt/rocm/lib/libamdhip64.so",
    str(Path(torch.__file__).parent / "lib" / "libamdhip64.so"),
)
REAL_HIP = next((path for path in CANDIDATES if Path(path).exists()), None)

needs_real_hip = pytest.mark.skipif(
    REAL_HIP is None, reason=f"no real HIP runtime at {', '.join(CANDIDATES)}; apt-get install libamdhip64-5"
)
without_rocm_torch = pytest.mark.skipif(torch.version.hip is not None, reason="torch is a ROCm build")


@needs_real_hip
def test_every_symbol_resolves_in_a_real_runtime():
    probed = _C.probe_hip_library(REAL_HIP)
    assert Path(probed["library"]).samefile(REAL_HIP)
    assert {"hipModuleLoadData", "hipModuleLaunchKernel", "hipGetDeviceProperties"} <= set(probed["symbols"])
    assert len(probed["symbols"]) == len(set(probed["symbols"]))


@needs_real_hip
def test_no_device_is_said_just_so():
    library = ctypes.CDLL(REAL_HIP)
    if library.hipGetDeviceCount(ctypes.byref(ctypes.c_int())) == 0:
        pytest.skip("this machine has a card")
    text = r"no AMD GPU is visible: hipGetDeviceCount returned hipErrorNoDevice \(100\).*libamdhip64"
    with pytest.raises(RuntimeError, match=text):
        _C.describe_backend("hip")


def test_the_simulator_is_never_taken_for_a_card():
    flash_attn_func(*(torch.zeros(1, 1, 1, 32, dtype=torch.float16) for _ in range(3)))
    simulator = _C.describe_backend("sim")["library"]
    try:
        said = _C.describe_backend("hip")["library"]
    except RuntimeError as error:
        said = str(error)
    assert simulator not in said


@pytest.fixture
def compile_library(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")

    def build(source: str) -> str:
        file = tmp_path / "library.c"
        file.write_text(source)
        library = tmp_path / "libamdhip64.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, file], check=True)
        return str(library)

    return build


def test_missing_symbol_names_symbol_and_library(compile_library):
    library = compile_library("const char* hipGetErrorName(int e) { return 0; }")
    with pytest.raises(RuntimeError, match=rf"{re.escape(library)} has no symbol hipGetErrorString"):
        _C.probe_hip_library(library)


def test_missing_library_names_its_path(tmp_path):
    with pytest.raises(RuntimeError, match=r"cannot load HIP runtime .*/none\.so"):
        _C.probe_hip_library(str(tmp_path / "none.so"))


def test_unknown_backend():
    with pytest.raises(ValueError, match='backend must be "hip" or "sim"; got "cuda"'):
        _C.describe_backend("cuda")


@without_rocm_torch
def test_cuda_tensors_of_a_torch_without_rocm_are_refused():
    with FakeTensorMode(allow_non_fake_inputs=True):
        q = torch.empty(1, 5, 2, 64, dtype=torch.float16, device="cuda")
        with pytest.raises(ValueError, match=r"q is on cuda:0, but .* built against a torch without ROCm"):
            flash_attn_func(q, q, q)
