"""The compiled extension: loading it, its version, and what it knows about the simulator."""

import importlib.metadata
import os
from typing import Any

import torch

try:
    import flashattn_rocm._C as _C
except ImportError as error:
    raise ImportError(
        f"the extension of flashattn_rocm cannot be loaded ({error}); it must be built against the torch "
        f"that is installed ({torch.__version__}): run `pip install --no-build-isolation .` in the "
        "repository; `python -m flashattn_rocm_doctor` says more"
    ) from error

__version__: str = importlib.metadata.version("flashattn-rocm")


def simulated_instructions() -> int:
    """Wave instructions that the simulated card has executed in this process.

    Returns:
        A count that only grows; take differences. One wave instruction is one instruction issued for a
        wave of 64 lanes.

    Raises:
        RuntimeError: if the package was built without the simulator.
    """
    return _C.simulated_instructions()


def backend_devices() -> list[dict[str, Any]]:
    """The devices that tensors would run on: the cards, else the simulated card.

    Raises:
        RuntimeError: there is neither.
    """
    order = {"hip": ("hip",), "sim": ("sim",)}.get(
        os.environ.get("FLASHATTN_ROCM_BACKEND", ""), ("hip", "sim")
    )
    reasons = []
    for backend in order:
        try:
            return [dict(device) for device in _C.describe_backend(backend)["devices"]]
        except RuntimeError as error:
            reasons.append(str(error))
    raise RuntimeError("; ".join(reasons))
