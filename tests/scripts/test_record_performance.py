"""scripts/record_performance.py; tests/perf compares with what it writes."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests/perf/record.json"


def test_help_measures_nothing():
    before = RECORD.stat().st_mtime_ns
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/record_performance.py", "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "tests/perf/record.json" in done.stdout
    assert RECORD.stat().st_mtime_ns == before
