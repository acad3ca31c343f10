"""Machines that a test can pretend to be."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from buildlib import system_packages, toolchain

_VARIABLES = ("HIPCC", "CLANG", "CXX", "LLVM_DIR", "HIP_DEVICE_LIB_PATH")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder that is all of PATH and of ROCM_PATH; nothing found before counts."""
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    toolchain.find_device_compiler.cache_clear()
    toolchain._output.cache_clear()
    yield tmp_path
    toolchain.find_device_compiler.cache_clear()
    toolchain._output.cache_clear()


@pytest.fixture
def add_clang(machine: Path) -> Callable[..., Path]:
    """Puts a program on PATH that answers like clang."""

    def add(name: str, version: str = "19.1.7", targets: str = "amdgcn") -> Path:
        program = machine / name
        program.write_text(
            "#!/bin/sh\n"
            f'case "$1" in --version) echo "clang version {version}";;\n'
            f'--print-targets) echo "{targets}";; -print-prog-name=lld) echo lld;; esac\n'
        )
        program.chmod(0o755)
        return program

    return add


@pytest.fixture
def apt_offers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Iterable[str]], None]:
    """Sets the packages of the pretended distribution."""

    def offer(packages: Iterable[str]) -> None:
        offered = frozenset(packages)
        monkeypatch.setattr(system_packages, "_offered", lambda names: offered & set(names))

    return offer
