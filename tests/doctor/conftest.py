"""Machines to examine that are not this one."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flashattn_rocm_doctor.machine import Machine

_MI50_BYTES = 17163091968


class FakeMachine:
    """A root in a folder: empty until a method adds to it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment: dict[str, str] = {}
        self.closed: set[str] = set()

    def write(self, path: str, text: str = "") -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def add_pci_card(self, vendor: str = "0x1002", kind: str = "0x038000") -> None:
        self.write("sys/bus/pci/devices/0000:03:00.0/vendor", vendor + "\n")
        self.write("sys/bus/pci/devices/0000:03:00.0/class", kind + "\n")

    def add_driver(self, version: str = "6.10.5") -> None:
        self.write("sys/module/amdgpu/version", version + "\n")

    def add_kfd(self, *target_versions: int) -> None:
        """The compute driver; its topology has a CPU and then these cards."""
        self.write("dev/kfd")
        nodes = "sys/class/kfd/kfd/topology/nodes"
        self.write(f"{nodes}/0/properties", "cpu_cores_count 16\nsimd_count 0\ngfx_target_version 0\n")
        for node, version in enumerate(target_versions, 1):
            self.write(f"{nodes}/{node}/properties", f"simd_count 240\ngfx_target_version {version}\n")
            self.write(f"{nodes}/{node}/mem_banks/0/properties", f"size_in_bytes {_MI50_BYTES}\n")
            self.write(f"dev/dri/renderD{127 + node}")

    def machine(self) -> Machine:
        return Machine(
            self.root, self.environment, lambda path: str(path.relative_to(self.root)) not in self.closed
        )


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    """A machine without anything."""
    return FakeMachine(tmp_path)


@pytest.fixture
def with_card(fake: FakeMachine) -> FakeMachine:
    """A machine with one MI50 and all that it needs."""
    fake.add_pci_card()
    fake.add_driver()
    fake.add_kfd(90006)
    return fake


@pytest.fixture
def only() -> Callable:
    """The one finding of a list that is not "ok"; checks that it says what to do in one sentence."""

    def pick(findings: list):
        (finding,) = (each for each in findings if each.status != "ok")
        assert finding.advice.endswith(".")
        assert ". " not in finding.advice
        return finding

    return pick
