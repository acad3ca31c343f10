"""Builds the simulator and its command-line tool into the package.

    python scripts/build_simulator.py [--lib FOLDER]

MAX_JOBS limits the compilations at once; LLVM_DIR and CXX choose another LLVM and compiler.
"""

import argparse
import sys
from pathlib import Path

from buildlib.errors import BuildError
from buildlib.paths import PACKAGE
from buildlib.simulator import build_simulator


def main() -> None:
    """Entry point; a failed build ends with one sentence."""
    parser = argparse.ArgumentParser(description="Build the simulated card into the package.")
    parser.add_argument("--lib", type=Path, default=PACKAGE / "lib", help="folder to install sim/ into")
    lib = parser.parse_args().lib
    try:
        build_simulator(lib)
    except BuildError as error:
        sys.exit(str(error))
    print(f"{lib / 'sim'}: {', '.join(sorted(file.name for file in (lib / 'sim').iterdir()))}")


if __name__ == "__main__":
    main()
