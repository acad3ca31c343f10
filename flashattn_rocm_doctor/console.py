"""The console script ``flashattn-rocm``: its ``doctor`` must run where the package cannot be imported."""

import sys

__all__ = ["main"]


def main() -> int:
    """Runs the command line; returns the exit status."""
    if sys.argv[1:2] == ["doctor"]:
        from flashattn_rocm_doctor.cli import main as doctor

        return doctor(sys.argv[2:])
    try:
        from flashattn_rocm.__main__ import main as package
    except ImportError as error:
        print(f"flashattn-rocm: error: {error}; `flashattn-rocm doctor` says what to do", file=sys.stderr)
        return 1
    return package()
