"""Importing the package and its command line, in fresh processes."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import flashattn_rocm


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_import_prints_nothing_and_opens_no_hip_runtime():
    code = (
        "import flashattn_rocm, torch\n"
        "assert not torch.cuda.is_initialized()\n"
        "loaded = open('/proc/self/maps').read()\n"
        "assert torch.version.hip or 'libamdhip64' not in loaded\n"
    )
    done = run("-c", code, HIP_VISIBLE_DEVICES="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_version():
    assert flashattn_rocm.__version__ == metadata.version("flashattn-rocm")


def test_package_is_typed():
    assert (Path(flashattn_rocm.__file__).parent / "py.typed").is_file()


def test_info_lists_every_kernel_with_its_resources():
    done = run("-m", "flashattn_rocm", "info", "--backend", "sim")
    assert done.returncode == 0, done.stderr
    assert "gfx906" in done.stdout
    assert "libamdhip64.so" in done.stdout
    for heading in ("VGPR", "SGPR", "LDS", "spills", "waves/SIMD", "CUs"):
        assert heading in done.stdout
    manifest = json.loads(Path(flashattn_rocm.__file__).with_name("lib").joinpath("kernels.json").read_text())
    for kernel in manifest["archs"]["gfx906"]:
        assert kernel["name"] in done.stdout


def test_info_help():
    done = run("-m", "flashattn_rocm", "--help")
    assert done.returncode == 0
    assert "info" in done.stdout
    assert run("-m", "flashattn_rocm").returncode == 2


def test_broken_extension_says_what_to_do(tmp_path):
    package = tmp_path / "flashattn_rocm"
    package.mkdir()
    source = Path(flashattn_rocm.__file__).parent
    for module in source.glob("*.py"):
        (package / module.name).write_text(module.read_text())
    (package / "_C.py").write_text("raise ImportError('undefined symbol: _ZN3c10')")
    done = run("-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import flashattn_rocm")
    assert done.returncode == 1
    assert "cannot be loaded (undefined symbol: _ZN3c10)" in done.stderr
    assert "pip install --no-build-isolation ." in done.stderr
