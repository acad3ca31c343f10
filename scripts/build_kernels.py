"""Builds the code objects from configs/ and csrc/kernels, and prints what each kernel takes.

    python scripts/build_kernels.py [--lib FOLDER]

PYTORCH_ROCM_ARCH chooses the archs, MAX_JOBS the compilations at once, HIPCC or CLANG the compiler.
"""

import argparse
import json
import sys
from pathlib import Path

from buildlib.errors import BuildError
from buildlib.paths import PACKAGE
from buildlib.requirements import ensure_build_requirements

_COLUMNS = ("vgpr", "sgpr", "spills", "scratch", "lds_bytes", "occupancy_waves_per_simd")
# Of the inner loop, where llvm-objdump is installed: all its instructions, and some of them.
_LOOP_COLUMNS = {"instructions": "loop", "dot2": "dot2", "ds_read": "ds_read", "waitcnt": "waitcnt"}


def main() -> None:
    """Entry point; a failed build ends with one sentence."""
    parser = argparse.ArgumentParser(description="Build the code objects into the package.")
    parser.add_argument("--lib", type=Path, default=PACKAGE / "lib", help="folder of kernels.hipfb and .json")
    lib = parser.parse_args().lib
    try:
        ensure_build_requirements()
        from buildlib.decode_kernels import build_decode_kernels  # imports what the line above provides
        from buildlib.kernels import build_kernels

        build_kernels(lib)
        build_decode_kernels(lib)
    except BuildError as error:
        sys.exit(str(error))
    for arch, kernels in json.loads((lib / "kernels.json").read_text())["archs"].items():
        headings = [column.removesuffix("_waves_per_simd") for column in _COLUMNS] + list(
            _LOOP_COLUMNS.values()
        )
        print(f"{arch:<46}" + "".join(f"{heading:>10}" for heading in headings))
        for kernel in kernels:
            loop = kernel["inner_loop"] or {}
            cells = [kernel[column] for column in _COLUMNS] + [loop.get(key, "") for key in _LOOP_COLUMNS]
            print(f"  {kernel['name']:<44}" + "".join(f"{cell:>10}" for cell in cells))


if __name__ == "__main__":
    main()
