"""The compiled extension (csrc/ops/python.cpp)."""
# ruff: noqa: N999 - the name of the extension

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, type_check_only

@type_check_only
class DeviceDescription(TypedDict):
    name: str
    arch: str
    compute_units: int

@type_check_only
class BackendDescription(TypedDict):
    library: str
    runtime_version: int
    devices: list[DeviceDescription]

@type_check_only
class ProbedLibrary(TypedDict):
    library: str
    symbols: list[str]

@type_check_only
class FwdClocks(TypedDict):
    fixed: int
    step: int
    step_full: int

@type_check_only
class FwdKernelRow(TypedDict):
    name: str
    head_dim: int
    head_dim_v: int
    block_m: int
    block_n: int
    waves: int
    p_keys: int
    kv: str
    operands: str
    rescale: str
    access: str
    scores: str
    element: str
    workgroups_per_cu: int
    lds_bytes: int
    clocks: FwdClocks

@type_check_only
class FwdChoice(FwdKernelRow):
    workgroups: int
    mean_steps: float
    estimated_clocks: float

@type_check_only
class LdsBudget(TypedDict):
    q: int
    kv: int
    p: int
    scales: int
    total: int
    limit: int

@type_check_only
class DecodePlan(TypedDict):
    kernel: str
    rows: int
    tiles: int
    splits: int
    at_once: int
    slots: int

@type_check_only
class KernelLaunch(TypedDict):
    grid: tuple[int, int, int]
    threads: int
    arguments: bytes

kernels_path: str
max_pieces: int
built_for_rocm_torch: bool

def describe_backend(backend: str) -> BackendDescription: ...
def probe_hip_library(path: str) -> ProbedLibrary: ...
def fwd_kernels() -> list[FwdKernelRow]: ...
def fwd_lds_budget(row: Mapping[str, Any]) -> LdsBudget: ...
def bwd_lds_budget(row: Mapping[str, Any]) -> LdsBudget: ...
def rank_fwd(
    batch: int,
    seqlen_q: int,
    seqlen_k: int,
    heads_q: int,
    heads_kv: int,
    head_dim: int,
    causal: bool,
    element: str = "f16",
    chunks: bool = True,
    changes_scores: bool = False,
    packed: bool = False,
    compute_units: int = 60,
    arch: str = "gfx906",
    rows: Sequence[Mapping[str, Any]] | None = None,
) -> list[FwdChoice]: ...
def plan_decode(
    batch: int,
    heads_kv: int,
    rows: int,
    keys: int,
    columns: int,
    bf16: bool = False,
    format: str = "plain",
    rope: int = 0,
    chunks: bool = True,
    num_splits: int = 0,
    compute_units: int = 60,
    own_lengths: bool = False,
) -> DecodePlan: ...
def fwd_launch(
    row: Mapping[str, Any],
    addresses: Mapping[str, int],
    batch: int,
    seqlen_q: int,
    seqlen_k: int,
    heads_q: int,
    heads_kv: int,
    head_dim: int,
    causal: bool,
    softmax_scale: float,
    *,
    compute_units: int = 60,
) -> KernelLaunch: ...
def bwd_launch(
    row: Mapping[str, Any],
    addresses: Mapping[str, int],
    batch: int,
    seqlen_q: int,
    seqlen_k: int,
    heads_q: int,
    heads_kv: int,
    head_dim: int,
    causal: bool,
    softmax_scale: float,
) -> KernelLaunch: ...
def set_fwd_tuning_source(source: Callable[[str], Iterable[tuple[str, int, int, int]]]) -> None: ...
def set_fwd_tile(name: str | None) -> str | None: ...
def simulated_instructions() -> int: ...
def set_timed(timed: bool) -> None: ...
def profiles() -> str: ...
