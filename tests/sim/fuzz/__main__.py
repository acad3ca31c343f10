"""python -m tests.sim.fuzz --seeds 2000 --first 1000: a long comparison with reduced findings.

A finding is not always the simulator's fault: clang 19 miscompiles about one of these functions in
2000 for the card (seed 639 at -O3: two SDWA multiplications with swapped halves become one). Read
the disassembly of the reduced function first.
"""

import argparse
import sys
import time

from tests.sim.fuzz.campaign import run_unit, units


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.fuzz", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many functions to compare")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--levels", default="1,3", help="optimisation levels of the card's code")
    options = parser.parse_args()
    started = time.monotonic()
    found = 0
    levels = options.levels.split(",")
    for seeds in units(options.first, options.seeds):
        findings = run_unit(seeds, levels)
        for finding in findings:
            print(finding, flush=True)
        found += len(findings)
        elapsed = time.monotonic() - started
        print(
            f"seeds {seeds.start} to {seeds.stop - 1}: {len(findings)} differ ({elapsed:.0f} s)", flush=True
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
