"""What the build recorded about the kernels in the package."""

import functools
import json
from pathlib import Path
from typing import Any, Literal

import flashattn_rocm._C as _C

__all__ = ["kernel_archs", "read_manifest"]


def read_manifest(family: Literal["kernels", "decode"] = "kernels") -> dict[str, Any]:
    """The build's record of every kernel in a bundle of code objects (lib/FAMILY.json), by arch.

    Args:
        family: "kernels": attention on whole tensors; "decode": what works on a KV cache.

    Raises:
        FileNotFoundError: the package was installed without its kernels.
    """
    return json.loads(Path(_C.kernels_path).with_name(f"{family}.json").read_text())


@functools.cache
def kernel_archs() -> frozenset[str]:
    """The archs that the package has kernels for, such as "gfx906".

    Raises:
        FileNotFoundError: the package was installed without its kernels.
    """
    return frozenset(read_manifest()["archs"])
