"""setup.py where little is installed."""

import json
import os
import subprocess
import sys
import zipfile
from email.parser import Parser

import pytest
import tomllib
import torch
from packaging.requirements import Requirement

from buildlib.archs import target_archs
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


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    """What pip reads before it installs, made where torch cannot be imported and no compiler is found."""
    folder = tmp_path_factory.mktemp("metadata")
    run = subprocess.run(
        [sys.executable, "-c", _PREPARE_METADATA, str(folder)],
        cwd=ROOT,
        env={"PATH": str(folder), "HIP_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    (file,) = folder.glob("*.dist-info/METADATA")
    return Parser().parsestr(file.read_text())


_PREPARE_METADATA = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "pydantic", "msgpack", "elftools"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
from setuptools import build_meta
build_meta.prepare_metadata_for_build_wheel(sys.argv[1])
"""


def test_pep_517_metadata_needs_no_torch_and_no_compiler(metadata):
    assert metadata["Name"] == "flashattn-rocm"
    assert metadata["Requires-Python"] == ">=3.10"


def test_torch_is_no_dependency_in_any_form(metadata):
    """pip would replace a ROCm torch by PyPI's CUDA build."""
    required = {Requirement(text).name.lower() for text in metadata.get_all("Requires-Dist")}
    assert "rich" in required
    assert not {name for name in required if name.startswith(("torch", "pytorch", "nvidia"))}


def test_build_requirements_leave_torch_out():
    """Or a build in isolation would fetch PyPI's, and build against it."""
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert "setuptools" in {Requirement(text).name for text in requires}
    assert not any(Requirement(text).name == "torch" for text in requires)


@pytest.mark.long
def test_wheel_holds_all_that_a_user_needs(tmp_path):
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index"]
    run = subprocess.run([*pip, "-w", str(tmp_path), str(ROOT)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("flashattn_rocm-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        manifest = json.loads(archive.read("flashattn_rocm/lib/kernels.json"))
        scripts = next(name for name in names if name.endswith("entry_points.txt"))
        entry_points = archive.read(scripts).decode()
    for name in (
        *("__init__.py", "py.typed", "_C.pyi", "lib/kernels.hipfb", "sim/published.toml"),
        *([] if torch.version.hip else ["lib/sim/libamdhip64.so", "lib/sim/flashattn-sim"]),
    ):
        assert f"flashattn_rocm/{name}" in names
    assert any(name.startswith("flashattn_rocm/_C.") and name.endswith(".so") for name in names)
    assert {"flashattn_rocm_autoload.py", "flashattn_rocm_doctor/console.py"} <= names
    sources = {str(file.relative_to(ROOT)) for file in ROOT.glob("flashattn_rocm*/**/*.py")}
    assert sources <= names
    assert "flashattn-rocm = flashattn_rocm_doctor.console:main" in entry_points
    archs = os.environ.get("PYTORCH_ROCM_ARCH")
    assert set(manifest["archs"]) == set(target_archs({"PYTORCH_ROCM_ARCH": archs} if archs else {}))
    outside = {name for name in names if not name.startswith("flashattn_rocm")}
    assert not outside, "a wheel must not put files beside the package"
    _attend_from_elsewhere(wheel, tmp_path / "site")


def _attend_from_elsewhere(wheel, site):
    """The wheel installed without its dependencies, which are here, and its command run in another folder."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(site),
    ]
    subprocess.run([*pip, str(wheel)], check=True)
    run = subprocess.run(
        [sys.executable, str(site / "bin/flashattn-rocm"), "doctor", "--json"],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = [
        finding["found"] for finding in json.loads(run.stdout)["findings"] if finding["check"] == "launch"
    ]
    assert len(found) >= 2
    assert all("agrees with float64" in text for text in found)
