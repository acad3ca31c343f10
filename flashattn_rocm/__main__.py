"""``python -m flashattn_rocm info``: what is installed, where it would run, and what the kernels use."""

import argparse
import sys

from flashattn_rocm.info import BACKENDS, print_info


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line; returns the exit code (1 when no asked backend has a device)."""
    parser = argparse.ArgumentParser(prog="python -m flashattn_rocm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser("info", help="print versions, backends, devices, and each kernel's resources")
    info.add_argument(
        "--backend",
        choices=BACKENDS,
        action="append",
        help="hip: a card; sim: the simulated card. Default: both, and one with a device is enough",
    )
    options = parser.parse_args(arguments)
    return 0 if print_info(options.backend or list(BACKENDS)) else 1


if __name__ == "__main__":
    sys.exit(main())
