"""The distribution: its name and version, and what it refuses to replace."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

SHIM = Path(__file__).resolve().parents[2] / "shim"


def test_module_belongs_to_a_distribution_that_libraries_accept(installed_shim):
    (found,) = importlib.metadata.distributions(name="flash-attn", path=[str(installed_shim)])
    assert "flash-attn" in importlib.metadata.packages_distributions()["flash_attn"]
    assert Version(found.version) in SpecifierSet("==2.8.3")
    # A process of its own: this one may have imported the module from another test's folder.
    code = "import flash_attn; print(flash_attn.__version__, flash_attn.__file__)"
    environment = {**os.environ, "PYTHONPATH": f"{installed_shim}{os.pathsep}{Path(__file__).parents[2]}"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    version, file = done.stdout.split()
    assert Version("2.7.1") <= Version(version) <= Version("2.8.4")  # what xformers accepts
    assert Path(file).is_relative_to(installed_shim)


@pytest.mark.parametrize(
    ("requires", "refused"),
    [("torch", True), ("einops\nRequires-Dist: torch", True), ("flashattn-rocm", False)],
)
def test_refuses_where_another_flash_attn_is(tmp_path, requires, refused):
    info = tmp_path / "flash_attn-2.8.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: flash-attn\nVersion: 2.8.1\nRequires-Dist: {requires}\n"
    )
    # The set-up looks where the interpreter installs, whatever is on sys.path.
    code = f"import sysconfig, runpy; sysconfig.get_path = lambda name: {str(tmp_path)!r}; " + (
        f"import sys; sys.argv = ['setup.py', '--version']; runpy.run_path({str(SHIM / 'setup.py')!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=SHIM, capture_output=True, text=True, env=os.environ
    )
    assert (done.returncode != 0) == refused, done.stderr
    if refused:
        assert "flash-attn 2.8.1 is installed" in done.stderr
        assert "pip uninstall flash-attn" in done.stderr
    else:
        assert done.stdout.strip() == "2.8.3+gfx906"
