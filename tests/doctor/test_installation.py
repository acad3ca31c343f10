"""What is read from the package's files, spoiled ones too."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import flashattn_rocm
from flashattn_rocm_doctor.installation import find_package, find_torch, read_package

PACKAGE = Path(flashattn_rocm.__file__).parent


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "lib").mkdir()
    for name in ("kernels.json", "kernels.hipfb"):
        shutil.copy(PACKAGE / "lib" / name, tmp_path / "lib")
    return tmp_path


def test_this_installation():
    package = find_package()
    assert package.folder == PACKAGE
    assert package.fault == ""
    assert "gfx906" in package.kernels
    assert package.code_objects.keys() == package.kernels.keys()
    found = find_torch()
    assert (found.version, found.hip) == (torch.__version__, torch.version.hip)
    assert found.folder == Path(torch.__file__).parent
    assert found.release >= (2, 7)


def test_a_whole_copy(copy):
    assert read_package(copy).fault == ""


@pytest.mark.parametrize("name", ["kernels.json", "kernels.hipfb"])
def test_missing_file(copy, name):
    (copy / "lib" / name).unlink()
    assert f"No such file or directory: '{copy / 'lib' / name}'" in read_package(copy).fault


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"not a bundle", "is no offload bundle"),
        (b"__CLANG_OFFLOAD_BUNDLE__", "unpack_from requires"),
        (b"__CLANG_OFFLOAD_BUNDLE__\x02\0\0\0\0\0\0\0", "unpack_from requires"),
    ],
)
def test_spoiled_bundle(copy, content, fault):
    (copy / "lib/kernels.hipfb").write_bytes(content)
    assert fault in read_package(copy).fault


def test_spoiled_code_object(copy):
    bundle = copy / "lib/kernels.hipfb"
    bundle.write_bytes(bundle.read_bytes().replace(b"\x7fELF", b"\x7fELF"[::-1], 1))
    assert "is no AMDGPU code object" in read_package(copy).fault


def test_bundle_of_another_build(copy):
    record = copy / "lib/kernels.json"
    content = json.loads(record.read_text())
    content["archs"]["gfx1030"] = []
    record.write_text(json.dumps(content))
    assert "kernels.json lists" in read_package(copy).fault
    assert "gfx1030" in read_package(copy).fault


def test_spoiled_record(copy):
    (copy / "lib/kernels.json").write_text("{")
    assert "JSONDecodeError" in read_package(copy).fault
