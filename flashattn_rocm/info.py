"""What the ``info`` command prints."""

import os
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import flashattn_rocm._C as _C
from flashattn_rocm._extension import __version__
from flashattn_rocm.manifest import read_manifest

BACKENDS = ("hip", "sim")

# Key in lib/kernels.json, heading in the table.
_RESOURCES = {
    "head_dim": "D",
    "block_m": "rows",
    "block_n": "keys",
    "threads": "threads",
    "vgpr": "VGPR",
    "sgpr": "SGPR",
    "lds_bytes": "LDS",
    "spills": "spills",
    "scratch": "scratch",
    "occupancy_waves_per_simd": "waves/SIMD",
}

# Key of the inner loop in kernels.json, heading in the table; without llvm-objdump the build leaves it out.
_INNER_LOOP = {"instructions": "loop", "dot2": "dot2", "ds_read": "ds_read", "waitcnt": "waitcnt"}


def print_info(backends: Sequence[str], console: Console | None = None) -> bool:
    """Prints versions, devices and kernels.

    Args:
        backends: out of BACKENDS, which ones to open.
        console: where to print; by default standard output, as wide as the table needs when it is no
            terminal.

    Returns:
        Whether one of the backends has a device.
    """
    console = console or _console()
    console.print(_versions())
    described = [_describe(backend) for backend in backends]
    console.print(_backend_table(described))
    console.print(_kernel_table(read_manifest()))
    return any(backend["devices"] for backend in described)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=200)


def _versions() -> Table:
    table = Table.grid(padding=(0, 2))
    rocm = f"ROCm {torch.version.hip}" if torch.version.hip else "no ROCm"
    table.add_row("flashattn_rocm", __version__)
    table.add_row("torch", f"{torch.__version__} ({rocm})")
    table.add_row("built for ROCm torch", "yes" if _C.built_for_rocm_torch else "no")
    table.add_row("FLASHATTN_ROCM_BACKEND", os.environ.get("FLASHATTN_ROCM_BACKEND", "auto (not set)"))
    return table


def _describe(backend: str) -> dict[str, Any]:
    try:
        return {"backend": backend, "reason": "", **_C.describe_backend(backend)}
    except RuntimeError as error:  # no library, no device: the table says which
        return {"backend": backend, "reason": str(error), "library": "", "devices": []}


def _backend_table(described: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Backends: tensors on cuda use hip, tensors on cpu use sim", title_justify="left")
    for heading in ("backend", "device", "name", "arch", "CUs", "HIP runtime"):
        table.add_column(heading, overflow="fold")
    for backend in described:
        if not backend["devices"]:
            table.add_row(backend["backend"], "none", "", "", "", backend["reason"])
        for index, device in enumerate(backend["devices"]):
            table.add_row(
                backend["backend"],
                str(index),
                device["name"],
                device["arch"],
                str(device["compute_units"]),
                f"{backend['library']} (version {backend['runtime_version']})",
            )
    return table


def _kernel_table(manifest: dict[str, Any]) -> Table:
    table = Table(title=f"Kernels in {_C.kernels_path}, by {manifest['compiler']}", title_justify="left")
    table.add_column("arch", no_wrap=True)
    table.add_column("kernel", no_wrap=True)
    for heading in (*_RESOURCES.values(), *_INNER_LOOP.values()):
        table.add_column(heading, justify="right")
    for arch, kernels in manifest["archs"].items():
        for kernel in kernels:
            loop = kernel.get("inner_loop") or {}
            cells = [kernel[key] for key in _RESOURCES] + [loop.get(key, "") for key in _INNER_LOOP]
            table.add_row(arch, kernel["name"], *map(_text, cells))
        table.add_section()
    return table


def _text(value: bool | int | str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
