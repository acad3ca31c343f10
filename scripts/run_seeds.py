#!/usr/bin/env python3
"""Runs tests again and again, each time with another order of the simulated waves.

The simulator runs the waves of a workgroup in an order that FLASHATTN_SIM_SEED shuffles. A kernel whose
result depends on that order, or that is refused in some of them only, has a bug.

    scripts/run_seeds.py -n 20 tests/ops/test_fwd.py -k causal
    make seeds TEST="tests/ops/test_fwd.py -k causal" N=20
"""

import argparse
import os
import subprocess
import sys


def failing_seeds(pytest_arguments: list[str], seeds: range) -> list[int]:
    """The seeds under which pytest does not succeed; its output is shown for these."""
    failed = []
    for seed in seeds:
        command = [sys.executable, "-m", "pytest", "-q", "-x", *pytest_arguments]
        environment = os.environ | {"FLASHATTN_SIM_SEED": str(seed)}
        run = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if run.returncode != 0:
            failed.append(seed)
            print(run.stdout)
        print(f"FLASHATTN_SIM_SEED={seed}: {'passed' if run.returncode == 0 else 'FAILED'}", flush=True)
    return failed


def main() -> int:
    """Returns 1 when a seed fails, else 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("-n", type=int, default=20, metavar="N", help="seeds to try (default: %(default)s)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: %(default)s)")
    options, pytest_arguments = parser.parse_known_args()
    if options.n < 1 or options.first < 1:
        parser.error(f"-n {options.n} --first {options.first}: both must be 1 or more (seed 0 is no shuffle)")
    if not pytest_arguments:
        parser.error("name the tests to run, e.g. tests/ops/test_fwd.py")
    failed = failing_seeds(pytest_arguments, range(options.first, options.first + options.n))
    if failed:
        print(f"failed under {len(failed)} of {options.n} seeds: {', '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
