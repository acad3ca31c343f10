"""What module loading accepts: code object versions, feature settings, bundles; and what it refuses."""

import json
import shutil
import struct
import subprocess

import pytest


@pytest.fixture(scope="module")
def load(run_python):
    """Loads a file as a module from disk and from memory; returns both error names and the text."""

    def load_(path):
        return json.loads(run_python("load", path))

    return load_


def bundle(entries: list[tuple[str, bytes]]) -> bytes:
    """An uncompressed clang offload bundle."""
    table_size = 32 + sum(24 + len(name) for name, _ in entries)
    table, blobs = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
    for name, blob in entries:
        table += struct.pack("<QQQ", table_size + len(blobs), len(blob), len(name)) + name.encode()
        blobs += blob
    return table + blobs


HOST = ("host-x86_64-unknown-linux--", b"")


def entry(target: str, blob: bytes) -> tuple[str, bytes]:
    return f"hipv4-amdgcn-amd-amdhsa--{target}", blob


@pytest.mark.parametrize("version", [4, 5, 6])
def test_code_object_versions_run(compile_hip, run_program, tool, tmp_path, version):
    # Version 4 reads its shape from the dispatch packet, later ones from hidden arguments too.
    file = compile_hip("kernels", f"-mcode-object-version={version}")
    assert f"code object version {version}" in run_program(tool, "info", file).out
    output = tmp_path / "shape.bin"
    words = [tool, "run", file, "shape", "--grid", "2,5,3", "--block", "8,2,4", "--arg", f"out:24:{output}"]
    done = run_program(*words)
    assert done.status == 0, done.err
    assert struct.unpack("6I", output.read_bytes()) == (8, 2, 4, 16, 10, 12)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("gfx906", "hipSuccess"),
        ("gfx906:sramecc+", "hipSuccess"),
        ("gfx906:sramecc+:xnack-", "hipSuccess"),
        ("gfx906:xnack+", "hipErrorNoBinaryForGpu"),
        ("gfx906:sramecc-", "hipErrorNoBinaryForGpu"),
        ("gfx908", "hipErrorNoBinaryForGpu"),
        ("gfx900", "hipErrorNoBinaryForGpu"),
    ],
)
def test_target_must_fit_the_card(compile_hip, load, tmp_path, target, expected):
    file = compile_hip("kernels", "--no-offload-arch=gfx906", f"--offload-arch={target}")
    alone = load(file)
    assert alone["file"] == alone["data"] == expected
    bundled = tmp_path / "bundle"
    bundled.write_bytes(bundle([HOST, entry(target, file.read_bytes())]))
    assert load(bundled)["data"] == expected


def test_bundle_entry_is_chosen_by_target(kernels, compile_hip, load, tmp_path):
    other = compile_hip("kernels", "--no-offload-arch=gfx906", "--offload-arch=gfx908").read_bytes()
    file = tmp_path / "bundle"
    file.write_bytes(bundle([HOST, entry("gfx908", other), entry("gfx906", kernels.read_bytes())]))
    assert load(file)["data"] == "hipSuccess"
    file.write_bytes(bundle([HOST, entry("gfx908", other), entry("gfx90a:xnack-", other)]))
    refused = load(file)
    assert refused["data"] == "hipErrorNoBinaryForGpu"
    assert "gfx908, gfx90a:xnack-" in refused["text"]


def test_bundles_of_clang_are_read(clang, kernels, load, tmp_path):
    bundler = shutil.which("clang-offload-bundler-19") or shutil.which("clang-offload-bundler")
    if bundler is None:
        bundler = subprocess.run(
            [clang, "-print-prog-name=clang-offload-bundler"], capture_output=True, text=True
        ).stdout.strip()
    file, empty = tmp_path / "bundle", tmp_path / "empty"
    empty.write_bytes(b"")
    command = [bundler, "-type=o", "-bundle-align=4096", f"-output={file}"]
    command += ["-targets=host-x86_64-unknown-linux--,hipv4-amdgcn-amd-amdhsa--gfx906"]
    command += [f"-input={empty}", f"-input={kernels}"]
    subprocess.run(command, check=True)
    assert load(file)["data"] == "hipSuccess"
    subprocess.run([*command, "-compress"], check=True)
    assert file.read_bytes()[:4] == b"CCOB"
    refused = load(file)
    assert refused["data"] == "hipErrorNotSupported"
    assert "compressed offload bundle" in refused["text"]


def damaged(image: bytes, kind: str) -> bytes:
    """A code object with one thing broken."""
    if kind == "cut":
        return image[: len(image) // 2]
    if kind in ("segment", "address"):
        (headers,), (count,) = struct.unpack_from("<Q", image, 32), struct.unpack_from("<H", image, 56)
        starts = [headers + i * 56 for i in range(count)]
        load = next(at for at in starts if struct.unpack_from("<I", image, at)[0] == 1)  # PT_LOAD
        at, value = {"segment": (load + 8, 1 << 40), "address": (load + 16, (1 << 64) - 4096)}[kind]
        return image[:at] + struct.pack("<Q", value) + image[at + 8 :]
    position, value = {"machine": (18, 62), "version": (8, 0), "osabi": (7, 0), "type": (16, 1)}[kind]
    return image[:position] + bytes([value]) + image[position + 1 :]


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("machine", "hipErrorInvalidImage", "machine is 62"),
        ("osabi", "hipErrorInvalidImage", "OS ABI is 0"),
        ("type", "hipErrorInvalidImage", "not linked"),
        ("version", "hipErrorNotSupported", "code object version 2"),
        ("cut", "hipErrorInvalidImage", "not a usable code object"),
        ("segment", "hipErrorInvalidImage", "a segment lies outside the file"),
        ("address", "hipErrorInvalidImage", "bytes lies at 18446744073709547520"),
    ],
)
def test_damaged_files_are_refused(kernels, load, tmp_path, kind, code, words):
    file = tmp_path / "damaged"
    file.write_bytes(damaged(kernels.read_bytes(), kind))
    refused = load(file)
    assert refused["file"] == code
    assert words in refused["text"]


def test_other_files_are_refused(load, tmp_path):
    file = tmp_path / "text"
    file.write_bytes(b"something else entirely, longer than any header would be" * 4)
    refused = load(file)
    assert refused["file"] == refused["data"] == "hipErrorInvalidImage"
    assert "neither like an ELF file nor like an offload bundle" in refused["text"]
