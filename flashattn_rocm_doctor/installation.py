"""What is installed, read from files: nothing is imported, so nothing can fail to load."""

import importlib.util
import json
import runpy
import struct
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Package", "Torch", "find_package", "find_torch"]

_FAMILIES = ("kernels", "decode")  # as in csrc/runtime/package.cpp
_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_DEVICE_ID = "hipv4-amdgcn-amd-amdhsa--"
_EM_AMDGPU = 224


@dataclass(frozen=True)
class Torch:
    """The torch of this interpreter.

    Attributes:
        version: as torch.__version__.
        hip: as torch.version.hip: None unless it is a ROCm build.
        folder: of the package.
    """

    version: str
    hip: str | None
    folder: Path

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version."""
        major, minor = self.version.split(".")[:2]
        return int(major), int(minor)


@dataclass(frozen=True)
class Package:
    """flashattn_rocm as it is installed.

    Attributes:
        folder: of the package.
        kernels: by arch, what the build recorded of each kernel in all bundles.
        code_objects: by arch, bytes of its code objects in all bundles.
        fault: what is wrong with these files; empty if nothing is.
    """

    folder: Path
    kernels: dict[str, list[dict]] = field(default_factory=dict)
    code_objects: dict[str, int] = field(default_factory=dict)
    fault: str = ""

    @property
    def bundles(self) -> list[Path]:
        """The files with code objects: attention on whole tensors, and what works on a KV cache."""
        return [self.folder / "lib" / f"{family}.hipfb" for family in _FAMILIES]

    @property
    def simulator(self) -> Path:
        """The simulated card's HIP runtime; it need not exist."""
        return self.folder / "lib/sim/libamdhip64.so"


def find_torch() -> Torch | None:
    """The torch of this interpreter; None without one."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    facts = runpy.run_path(str(folder / "version.py"))
    return Torch(str(facts["__version__"]), facts.get("hip"), folder)


def find_package() -> Package | None:
    """The flashattn_rocm of this interpreter; None without one."""
    spec = importlib.util.find_spec("flashattn_rocm")
    if spec is None or spec.origin is None:
        return None
    return read_package(Path(spec.origin).parent)


def read_package(folder: Path) -> Package:
    """Reads the build's records and the code objects' headers."""
    package = Package(folder)
    for bundle in package.bundles:
        record = bundle.with_suffix(".json")
        try:
            kernels = json.loads(record.read_text())["archs"]
            code_objects = _code_objects(bundle)
        except (OSError, ValueError, KeyError, struct.error) as error:
            return Package(folder, fault=f"{type(error).__name__}: {error}")
        if set(kernels) != set(code_objects):
            fault = f"{record.name} lists {', '.join(kernels)}, {bundle.name} has {', '.join(code_objects)}"
            return Package(folder, kernels, code_objects, fault)
        for arch, size in code_objects.items():
            package.kernels[arch] = package.kernels.get(arch, []) + kernels[arch]
            package.code_objects[arch] = package.code_objects.get(arch, 0) + size
    return package


def _code_objects(bundle: Path) -> dict[str, int]:
    """Size of the code object of each arch in clang's offload bundle.

    Raises:
        ValueError: it is no bundle, or an entry is no AMDGPU code object.
    """
    content = bundle.read_bytes()
    if not content.startswith(_BUNDLE_MAGIC):
        raise ValueError(f"{bundle} is no offload bundle")
    at = len(_BUNDLE_MAGIC)
    (entries,) = struct.unpack_from("<Q", content, at)
    at += 8
    found = {}
    for _ in range(entries):
        offset, size, id_length = struct.unpack_from("<QQQ", content, at)
        name = content[at + 24 : at + 24 + id_length].decode()
        at += 24 + id_length
        if not name.startswith(_DEVICE_ID):
            continue
        code_object = content[offset : offset + size]
        if (
            not code_object.startswith(b"\x7fELF")
            or struct.unpack_from("<H", code_object, 18)[0] != _EM_AMDGPU
        ):
            raise ValueError(f"{bundle}: the entry {name} is no AMDGPU code object")
        found[name.removeprefix(_DEVICE_ID)] = size
    return found
