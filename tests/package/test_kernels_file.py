"""What is said when the packaged kernels do not fit the device, are spoiled, or are missing."""

import pytest
import torch

from tests.kit.package_copy import PACKAGE, PackageCopy

CALL = """
import torch, flashattn_rocm
q = torch.zeros(1, 1, 1, 32, dtype=torch.float16)
flashattn_rocm.flash_attn_func(q, q, q)
"""

pytestmark = pytest.mark.skipif(torch.version.hip is not None, reason="looks at the simulated gfx906")


@pytest.fixture
def package(tmp_path):
    return PackageCopy(tmp_path)


def error_of(package: PackageCopy) -> str:
    done = package.run(CALL)
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


def test_the_copy_works(package):
    done = package.run(CALL + "print(flashattn_rocm.__file__)")
    assert done.returncode == 0, done.stderr
    assert str(package.root) in done.stdout


def test_no_kernels_for_the_arch(package):
    bundle = (PACKAGE / "lib" / "kernels.hipfb").read_bytes()
    other = bundle.replace(b"amdgcn-amd-amdhsa--gfx906", b"amdgcn-amd-amdhsa--gfx90c")
    assert other != bundle
    package.replace_kernels(other)
    error = error_of(package)
    assert error.startswith("RuntimeError: this build of flashattn_rocm holds no kernels for gfx906")
    assert "gfx90c" in error
    assert "PYTORCH_ROCM_ARCH=gfx906 pip install --no-build-isolation ." in error


@pytest.mark.parametrize("content", [b"", b"not a bundle", b"__CLANG_OFFLOAD_BUNDLE__\x09"])
def test_spoiled_kernels(package, content):
    package.replace_kernels(content)
    error = error_of(package)
    assert error.startswith("RuntimeError: ")
    assert "kernels.hipfb" in error


def test_missing_kernels(package):
    package.kernels.unlink()
    error = error_of(package)
    assert f"cannot read the kernels {package.kernels}: No such file or directory; reinstall" in error
