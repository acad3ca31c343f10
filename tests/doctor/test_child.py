"""Probes that end badly."""

import sys

import pytest

from flashattn_rocm_doctor import child

_PROBE = """
import os, signal, sys, time
from flashattn_rocm_doctor.child import report
print("noise of a library")
report("first", number=1)
what = sys.argv[1]
if what == "abort": os.abort()
if what == "hang": time.sleep(60)
if what == "raise": raise ImportError("undefined symbol")
report("second")
"""


@pytest.fixture
def probe(tmp_path, monkeypatch):
    """Runs the probe above as if it were a module of the package."""
    file = tmp_path / "probe.py"
    file.write_text(_PROBE)
    run = child.subprocess.run

    def run_file(command, **options):
        return run([sys.executable, str(file), *command[3:]], **options)

    monkeypatch.setattr(child.subprocess, "run", run_file)
    return lambda what, timeout=60: child.run_probe("probe", what, timeout=timeout)


def test_all_stages_of_a_good_end(probe):
    report = probe("nothing")
    assert report.ending == ""
    assert report.stages == [{"stage": "first", "number": 1}, {"stage": "second"}]


@pytest.mark.parametrize(
    ("what", "ending"),
    [("abort", "ended by SIGABRT: it said nothing"), ("raise", "ImportError: undefined symbol")],
)
def test_what_was_said_before_a_bad_end(probe, what, ending):
    report = probe(what)
    assert report.ending == ending
    assert report.first("first") == {"stage": "first", "number": 1}
    assert report.first("second") is None


def test_hanging(probe):
    report = probe("hang", timeout=2)
    assert report.ending == "no answer within 2 s"
    assert report.all("first")
