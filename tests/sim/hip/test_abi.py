"""The binary interface that csrc/sim/hip writes down, against hip-python and an installed HIP header."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SIM_SOURCES = Path(__file__).parents[3] / "csrc" / "sim"
HEADER = Path("/usr/include/hip/hip_runtime_api.h")


def snake(camel: str) -> str:
    """pciBusID -> pci_bus_id, maxTexture1DMipmap -> max_texture_1d_mipmap."""
    words = re.sub(r"(\d)D", r"_\1d_", camel)
    words = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", words)
    words = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", words)
    return re.sub(r"_+", "_", words).strip("_").lower()


def print_numbers(clang: str, tmp_path: Path, text: str, *options: str) -> dict[str, int]:
    """Compiles and runs a program that prints "name number" lines."""
    source, program = tmp_path / "numbers.cpp", tmp_path / "numbers"
    source.write_text(text)
    command = [clang, "-std=c++20", f"-I{SIM_SOURCES}", *options, str(source), "-o", str(program)]
    subprocess.run(command, check=True)
    lines = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: int(number) for name, number in (line.split() for line in lines)}


def program(headers: str, pairs: dict[str, str]) -> str:
    """A C++ program that prints the value of each expression under its name."""
    body = "\n".join(f'  std::printf("{n} %zu\\n", static_cast<size_t>({e}));' for n, e in pairs.items())
    return f"#include <cstddef>\n#include <cstdio>\n{headers}\nint main() {{\n{body}\n}}\n"


def test_property_offsets_are_those_of_hip_python(run_python, clang, tmp_path):
    theirs = json.loads(run_python("bytes_of_properties"))
    fields = [name for name in theirs["offsets"] if not name.startswith("cooperativeMultiDeviceUnmatched")]
    pairs = {name: f"offsetof(fasim::hip::PropertiesR0600, {snake(name)})" for name in fields}
    pairs["size"] = "sizeof(fasim::hip::PropertiesR0600)"
    ours = print_numbers(clang, tmp_path, program('#include "hip/properties.h"', pairs))
    assert len(fields) > 70
    assert ours.pop("size") == theirs["size"]
    assert ours == {name: theirs["offsets"][name] for name in fields}


@pytest.mark.skipif(
    not HEADER.is_file() or "R0600" in HEADER.read_text(),
    reason=f"{HEADER} is not that of HIP 5, which has the older layout",
)
def test_numbers_and_older_properties_are_those_of_the_hip_5_header(clang, tmp_path):
    types = "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>\n"
    text = HEADER.read_text()
    struct = text[text.index("typedef struct hipDeviceProp_t {") : text.index("} hipDeviceProp_t;")]
    fields = re.findall(r"^\s+(?:char|size_t|int|unsigned int\*|hipDeviceArch_t)\s+(\w+)", struct, re.M)
    fields = [name for name in fields if not name.startswith("cooperativeMultiDeviceUnmatched")]
    theirs = print_numbers(
        clang, tmp_path, program(types, {n: f"offsetof(hipDeviceProp_t, {n})" for n in fields})
    )
    ours = print_numbers(
        clang,
        tmp_path,
        program(
            '#include "hip/properties.h"',
            {n: f"offsetof(fasim::hip::PropertiesR0000, {snake(n)})" for n in fields},
        ),
    )
    assert len(fields) > 45
    assert ours == theirs


@pytest.mark.skipif(not HEADER.is_file(), reason=f"{HEADER} is not installed")
def test_error_numbers_are_those_of_the_installed_header(clang, tmp_path):
    rows = re.findall(r"X\((\w+), (\d+), ", (SIM_SOURCES / "hip" / "error_codes.h").read_text())
    names = {name: name for name, _ in rows}
    types = "#define __HIP_PLATFORM_AMD__\n#include <hip/hip_runtime_api.h>\n"
    assert len(rows) > 70
    assert print_numbers(clang, tmp_path, program(types, names)) == {n: int(v) for n, v in rows}


def exported(library: Path) -> set[str]:
    nm = shutil.which("nm") or shutil.which("llvm-nm-19")
    assert nm, "nm (package binutils) is not installed"
    lines = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in lines.stdout.splitlines()}


def test_only_hip_and_simulator_names_are_exported(tool):
    names = exported(tool.parent / "libamdhip64.so")
    assert len(names) > 500
    assert any(name.startswith("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_t") for name in names)
    allowed = re.compile(r"(__)?hip[A-Z]\w*|flashattnSim\w+|_Z24hipExtModuleLaunchKernel\w+")
    assert {name for name in names if not allowed.fullmatch(name)} == set()


def test_every_alias_loads_the_same_library(tool):
    library = tool.parent / "libamdhip64.so"
    for version in (5, 6, 7):
        assert (tool.parent / f"libamdhip64.so.{version}").resolve() == library.resolve()
