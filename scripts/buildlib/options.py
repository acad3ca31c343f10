"""Options of the build that come from the environment."""

import os

from buildlib.errors import BuildError


def max_jobs() -> int:
    """MAX_JOBS, or the number of usable cores.

    Raises:
        BuildError: MAX_JOBS is no positive integer.
    """
    asked = os.environ.get("MAX_JOBS")
    if not asked:
        return len(os.sched_getaffinity(0))
    if not asked.isdecimal() or int(asked) < 1:
        raise BuildError(f"MAX_JOBS={asked!r} must be a positive integer.")
    return int(asked)


def warnings_are_errors() -> bool:
    """Where FLASHATTN_ROCM_WERROR=1 asks, as CI does; a user's compiler may be newer."""
    return os.environ.get("FLASHATTN_ROCM_WERROR") == "1"


def warning_flags() -> list[str]:
    """For g++ and clang++."""
    return ["-Wall", "-Wextra", *(["-Werror"] if warnings_are_errors() else [])]
