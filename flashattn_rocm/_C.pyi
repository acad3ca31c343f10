"""The compiled extension (csrc/ops/python.cpp)."""
# ruff: noqa: N999 - the name of the extension

from typing import TypedDict

class DeviceDescription(TypedDict):
    name: str
    arch: str
    compute_units: int

class BackendDescription(TypedDict):
    library: str
    runtime_version: int
    devices: list[DeviceDescription]

class ProbedLibrary(TypedDict):
    library: str
    symbols: list[str]

class FwdKernelRow(TypedDict):
    name: str
    head_dim: int
    block_m: int
    block_n: int
    waves: int
    causal: bool
    lds_bytes: int

kernels_path: str
built_for_rocm_torch: bool

def describe_backend(backend: str) -> BackendDescription: ...
def probe_hip_library(path: str) -> ProbedLibrary: ...
def fwd_kernels() -> list[FwdKernelRow]: ...
def simulated_instructions() -> int: ...
def set_timed(timed: bool) -> None: ...
def last_profile() -> str | None: ...
