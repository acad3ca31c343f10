#!/usr/bin/env python3
"""Measures the forward beside its rivals; `--help` says what can be chosen."""

import sys

from flashattn_rocm.benchmarks.cli import main

if __name__ == "__main__":
    sys.exit(main())
