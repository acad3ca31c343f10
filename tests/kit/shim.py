"""The shim as pip installs it, on sys.path: a fixture for the folders that need it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_sites: list[Path] = []
SHIM = Path(__file__).resolve().parents[2] / "shim"


@pytest.fixture(scope="session")
def installed_shim(tmp_path_factory) -> Path:
    """A folder with the installed distribution, importable."""
    # Each folder of tests that takes the fixture has one of its own, and flash_attn is imported once.
    if not _sites:
        _sites.append(_install(tmp_path_factory.mktemp("shim")))
    return _sites[0]


def _install(folder: Path) -> Path:
    # pip builds in the source tree.
    source = shutil.copytree(SHIM, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    site = folder / "site"
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
    ]
    subprocess.run([*pip, "--target", str(site), str(source)], check=True)
    sys.path.insert(0, str(site))
    return site
