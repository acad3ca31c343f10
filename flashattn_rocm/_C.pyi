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
    p_keys: int
    workgroups_per_cu: int
    element: str
    lds_bytes: int

class RankedFwdKernel(TypedDict):
    name: str
    workgroups: int
    workgroups_per_cu: int
    mean_steps: float
    clocks: float

kernels_path: str
built_for_rocm_torch: bool

def describe_backend(backend: str) -> BackendDescription: ...
def probe_hip_library(path: str) -> ProbedLibrary: ...
def fwd_kernels() -> list[FwdKernelRow]: ...
def rank_fwd(
    batch: int,
    seqlen_q: int,
    seqlen_k: int,
    heads_q: int,
    heads_kv: int,
    head_dim: int,
    causal: bool,
    bf16: bool = False,
    chunks: bool = True,
    changes_scores: bool = False,
    compute_units: int = 60,
) -> list[RankedFwdKernel]: ...
def set_fwd_tile(name: str | None) -> None: ...
def simulated_instructions() -> int: ...
def set_timed(timed: bool) -> None: ...
def last_profile() -> str | None: ...
