#!/usr/bin/env python3
"""Finds the quickest tiles, on a card or the simulated one; see docs/tuning/fwd.md and docs/tuning/bwd.md."""

import sys

from tunelib.cli import main

if __name__ == "__main__":
    sys.exit(main())
