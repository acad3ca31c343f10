"""Calls the op, built as for a ROCm torch, on the card doubles; prints what reached the card as JSON.

Usage: drive.py BUILD_FOLDER KERNELS. A process of its own, since a process can register the op only once.
"""

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils.cpp_extension import load

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent


class TensorView(ctypes.Structure):
    """As in csrc/core/fwd_args.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        *((f"{n}_stride", ctypes.c_int64) for n in ("batch", "row", "head")),
    )


class FwdArgs(ctypes.Structure):
    """As in csrc/core/fwd_args.h."""

    _fields_ = (
        *((name, TensorView) for name in "qkvo"),
        ("lse", ctypes.c_void_p),
        ("sinks", ctypes.c_void_p),
        ("sequences", ctypes.c_void_p * 3),
        ("score_changes", ctypes.c_byte * 64),
        ("dropout", ctypes.c_byte * 24),
        *((name, ctypes.c_int64) for name in ("lse_batch_stride", "lse_head_stride")),
        *((name, ctypes.c_int32) for name in ("batch", "seqlen_q", "seqlen_k", "heads_q", "heads_kv")),
        *((name, ctypes.c_int32) for name in ("head_dim", "head_dim_v", "window_left", "window_right")),
        *((name, ctypes.c_int32) for name in ("top_left", "heads_together")),
        ("softmax_scale", ctypes.c_float),
    )


class Launch(ctypes.Structure):
    """As in hip_double.c."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("count", "device", "load_device", "host_registrations")),
        ("stream", ctypes.c_void_p),
        ("kernel", ctypes.c_char_p),
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("arguments", FwdArgs),
    )


def main(folder: Path, kernels: Path) -> None:
    hip = load_hip_double(folder)
    torch_hip = load(
        "torch_hip_double",
        [str(HERE / "torch_hip_double.cpp")],
        build_directory=str(folder),
        extra_cflags=["-O0", "-std=c++20"],
        extra_ldflags=["-Wl,-soname,libtorch_hip.so"],
    )
    load_op(folder, kernels)
    launch = Launch.in_dll(hip, "recorded_launch")
    print(json.dumps([call(torch_hip, launch, device) for device in (1, 0, 1)] + refusals(torch_hip)))


def load_hip_double(folder: Path) -> ctypes.CDLL:
    """The runtime that the process has loaded, as a ROCm torch would have."""
    library = folder / "hip_double.so"
    soname = "-Wl,-soname,libamdhip64.so.7"
    subprocess.run(["cc", "-shared", "-fPIC", soname, "-o", library, HERE / "hip_double.c"], check=True)
    return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def load_op(folder: Path, kernels: Path) -> None:
    sources = [*(ROOT / "csrc/runtime").glob("*.cpp"), *(ROOT / "csrc/ops").glob("*.cpp")]
    (folder / "lib").mkdir()
    (folder / "lib" / "kernels.hipfb").symlink_to(kernels)
    load(
        "_C",
        [str(file) for file in sources],
        build_directory=str(folder),
        extra_cflags=["-O0", "-std=c++20", "-DFLASHATTN_ROCM_TORCH_HIP=1"],
        extra_include_paths=[str(ROOT / "csrc"), str(ROOT / "build" / "generated")],
        is_python_module=False,
    )


def call(torch_hip: Any, launch: Launch, device: int) -> dict[str, Any]:
    q, k, v = (
        torch_hip.to_card(torch.zeros(3, s, h, 64).half(), device) for s, h in ((70, 4), (9, 2), (9, 2))
    )
    before = launch.count
    out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, 0.5, True)
    arguments = launch.arguments
    return {
        "launches": launch.count - before,
        "device": launch.device,
        "load_device": launch.load_device,
        "device_after": torch_hip.current_device(),
        "stream": launch.stream,
        "kernel": launch.kernel.decode(),
        "grid": list(launch.grid),
        "block": list(launch.block),
        "host_registrations": launch.host_registrations,
        "out_device": str(out.device),
        "lse_device": str(lse.device),
        "data_match": [getattr(arguments, n).data for n in "qkvo"] == [t.data_ptr() for t in (q, k, v, out)],
        "lse_match": arguments.lse == lse.data_ptr(),
        "strides": [arguments.q.batch_stride, arguments.q.row_stride, arguments.q.head_stride],
        "scale": arguments.softmax_scale,
        "sizes": [getattr(arguments, n) for n in ("batch", "seqlen_q", "seqlen_k", "heads_q", "heads_kv")],
    }


def refusals(torch_hip: Any) -> list[str]:
    host = torch.zeros(1, 5, 2, 64).half()
    texts = []
    for tensors in ((0, 1, 0), (0, None, 0), (0, 0, None)):
        try:
            torch.ops.flashattn_rocm.fwd(
                *(host if i is None else torch_hip.to_card(host, i) for i in tensors)
            )
        except ValueError as error:
            texts.append(str(error))
    return texts


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
