"""The machine as the checks see it; tests put another in its place."""

import grp
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Gpu", "Machine"]

_AMD = "0x1002"
_DISPLAY_CLASSES = ("0x03", "0x12")  # display controllers, processing accelerators


@dataclass(frozen=True)
class Gpu:
    """A card that the kernel's compute driver (KFD) offers.

    Attributes:
        node: number of its node in KFD's topology.
        arch: such as "gfx906".
        memory_bytes: of the card's own memory; 0 if the driver does not say.
    """

    node: int
    arch: str
    memory_bytes: int


def _accessible(path: Path) -> bool:
    return os.access(path, os.R_OK | os.W_OK)


@dataclass(frozen=True)
class Machine:
    """Where to look.

    Attributes:
        root: of the file system.
        environment: of the process.
        accessible: whether the user may read and write a file.
    """

    root: Path = Path("/")
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    accessible: Callable[[Path], bool] = _accessible

    @property
    def kfd(self) -> Path:
        """The device file of the compute driver; it need not exist."""
        return self.root / "dev/kfd"

    def render_nodes(self) -> list[Path]:
        """The device files of the cards' memory managers."""
        return sorted((self.root / "dev/dri").glob("renderD*"))

    def in_container(self) -> bool:
        """Whether docker or podman made this root."""
        return any((self.root / name).exists() for name in (".dockerenv", "run/.containerenv"))

    def driver_loaded(self) -> bool:
        """Whether the kernel has amdgpu."""
        return (self.root / "sys/module/amdgpu").is_dir()

    def driver_version(self) -> str:
        """That of amdgpu-dkms; "of the kernel" for the driver that comes with Linux."""
        return _read(self.root / "sys/module/amdgpu/version") or "of the kernel"

    def amd_cards_on_pci(self) -> int:
        """How many AMD cards the PCI bus has, driver or not."""
        devices = (self.root / "sys/bus/pci/devices").glob("*")
        return sum(
            _read(device / "vendor") == _AMD and _read(device / "class").startswith(_DISPLAY_CLASSES)
            for device in devices
        )

    def gpus(self) -> list[Gpu]:
        """The cards in KFD's topology, by node."""
        found = []
        for node in (self.root / "sys/class/kfd/kfd/topology/nodes").glob("*"):
            properties = _properties(node / "properties")
            if properties.get("simd_count", 0) > 0 and properties.get("gfx_target_version", 0) > 0:
                banks = (_properties(bank) for bank in node.glob("mem_banks/*/properties"))
                memory = sum(bank.get("size_in_bytes", 0) for bank in banks)
                found.append(Gpu(int(node.name), _arch(properties["gfx_target_version"]), memory))
        return sorted(found, key=lambda gpu: gpu.node)

    def group_of(self, file: Path) -> str:
        """The name of the group that owns a file, or its number where there is no name."""
        number = file.stat().st_gid
        try:
            return grp.getgrgid(number).gr_name
        except KeyError:
            return str(number)


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _properties(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in _read(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _arch(target_version: int) -> str:
    """KFD writes gfx906 as 90006 and gfx90a as 90010: the last digit of the name is hexadecimal."""
    major, minor, stepping = target_version // 10000, target_version // 100 % 100, target_version % 100
    return f"gfx{major}{minor:x}{stepping:x}"
