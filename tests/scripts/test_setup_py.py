"""setup.py where little is installed."""

import subprocess
import sys

from buildlib.paths import ROOT

_HIDE = """
import importlib.util, runpy, sys
hidden, sys.argv = sys.argv[1].split(","), ["setup.py", *sys.argv[2:]]
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in hidden else find(name, package)
sys.modules.update(dict.fromkeys(hidden))
runpy.run_path("setup.py")
"""


def _setup_py(tmp_path, hidden, arguments):
    command = [sys.executable, "-c", _HIDE, hidden, *arguments]
    return subprocess.run(command, cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True)


def test_metadata_needs_no_torch_no_compiler_and_no_build_packages(tmp_path):
    run = _setup_py(tmp_path, "torch,pydantic,msgpack,elftools", ["egg_info", "--egg-base", tmp_path])
    assert run.returncode == 0, run.stderr
    metadata = (tmp_path / "flashattn_rocm.egg-info/PKG-INFO").read_text()
    assert "Name: flashattn-rocm" in metadata
    assert "Requires-Dist: torch" not in metadata


def test_build_without_torch_says_no_build_isolation(tmp_path):
    run = _setup_py(tmp_path, "torch", ["build_ext", "--build-lib", tmp_path])
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("torch is not visible to this build")
    assert "--no-build-isolation" in last
