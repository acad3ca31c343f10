"""What is read from the package's files, spoiled ones too."""

import json
import shutil
from pathlib import Path

import pytest
import torch

import flashattn_rocm
from flashattn_rocm_doctor.installation import find_package, find_torch, read_package

PACKAGE = Path(flashattn_rocm.__file__).parent
FILES = ("kernels.json", "kernels.hipfb", "decode.json", "decode.hipfb")


@pytest.fixture
def copy(tmp_path):
    (tmp_path / "lib").mkdir()
    for name in FILES:
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
    package = read_package(copy)
    assert package.fault == ""
    names = {kernel["name"] for kernel in package.kernels["gfx906"]}
    assert {"flashattn_decode_f16_d128r4w4", "flashattn_fwd_f16_d128_m128n64w4p32_in_turns"} <= names


@pytest.mark.parametrize("name", FILES)
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
@pytest.mark.parametrize("name", ["kernels.hipfb", "decode.hipfb"])
def test_spoiled_bundle(copy, content, fault, name):
    (copy / "lib" / name).write_bytes(content)
    assert fault in read_package(copy).fault


@pytest.mark.parametrize("name", ["kernels.hipfb", "decode.hipfb"])
def test_spoiled_code_object(copy, name):
    bundle = copy / "lib" / name
    bundle.write_bytes(bundle.read_bytes().replace(b"\x7fELF", b"\x7fELF"[::-1], 1))
    assert "is no AMDGPU code object" in read_package(copy).fault


@pytest.mark.parametrize("name", ["kernels.json", "decode.json"])
def test_bundle_of_another_build(copy, name):
    record = copy / "lib" / name
    content = json.loads(record.read_text())
    content["archs"]["gfx1030"] = []
    record.write_text(json.dumps(content))
    assert f"{name} lists" in read_package(copy).fault
    assert "gfx1030" in read_package(copy).fault


def test_spoiled_record(copy):
    (copy / "lib/kernels.json").write_text("{")
    assert "JSONDecodeError" in read_package(copy).fault
