"""The command line ``flashattn-rocm``, also ``python -m flashattn_rocm``."""

import argparse
import importlib.util
import sys

from flashattn_rocm.dispatch import add_dispatch_command
from flashattn_rocm.info import BACKENDS, print_info
from flashattn_rocm.profiling.cli import add_profile_command
from flashattn_rocm.verify.cli import add_verify_command
from flashattn_rocm_doctor.cli import add_arguments as add_doctor_arguments
from flashattn_rocm_doctor.cli import run as run_doctor

_VALIDATE = "flashattn_rocm.sim.validate"


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line.

    Returns:
        0; 1 when the command failed; what `sim validate` returns. Wrong usage exits with 2.
    """
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    if options.run is _validate:
        return _validate(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return options.run(options)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        print(f"flashattn-rocm: error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flashattn-rocm", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)

    description = "Versions, backends, devices, and each kernel's resources."
    info = commands.add_parser(
        "info", help="what is installed and where it would run", description=description
    )
    info.add_argument(
        "--backend",
        choices=BACKENDS,
        action="append",
        help="hip: a card; sim: the simulated card. Default: both, and one with a device is enough",
    )
    info.set_defaults(run=_info)

    doctor = commands.add_parser(
        "doctor",
        help="what stops attention from running here, and what to do",
        description="What stops attention from running here, and one sentence on what to do about each.",
    )
    add_doctor_arguments(doctor)
    doctor.set_defaults(run=run_doctor)

    add_verify_command(commands)
    add_profile_command(commands)
    add_dispatch_command(commands)

    sim = commands.add_parser("sim", help="the simulator itself").add_subparsers(dest="what", required=True)
    # Its options, --help too, are its own.
    validate = sim.add_parser("validate", help="compare the simulator with published figures", add_help=False)
    validate.set_defaults(run=_validate)
    return parser


def _info(options: argparse.Namespace) -> int:
    """1 when no asked backend has a device."""
    return 0 if print_info(options.backend or list(BACKENDS)) else 1


def _validate(arguments: list[str]) -> int:
    if importlib.util.find_spec("flashattn_rocm.sim") is None or importlib.util.find_spec(_VALIDATE) is None:
        print(
            f"flashattn-rocm: error: this package was installed without {_VALIDATE}; "
            "reinstall flashattn-rocm from the repository",
            file=sys.stderr,
        )
        return 1
    from flashattn_rocm.sim import validate

    return validate.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
