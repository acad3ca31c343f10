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


def main() -> None:
    """Entry point; a failed build ends with one sentence."""
    parser = argparse.ArgumentParser(description="Build the code objects into the package.")
    parser.add_argument("--lib", type=Path, default=PACKAGE / "lib", help="folder of kernels.hipfb and .json")
    lib = parser.parse_args().lib
    try:
        ensure_build_requirements()
        from buildlib.kernels import build_kernels  # imports what the line above provides

        build_kernels(lib)
    except BuildError as error:
        sys.exit(str(error))
    for arch, kernels in json.loads((lib / "kernels.json").read_text())["archs"].items():
        print(f"{arch:<46}" + "".join(f"{column.removesuffix('_waves_per_simd'):>10}" for column in _COLUMNS))
        for kernel in kernels:
            print(f"  {kernel['name']:<44}" + "".join(f"{kernel[column]:>10}" for column in _COLUMNS))


if __name__ == "__main__":
    main()
