"""Probe: a HIP runtime through ctypes, without torch: version, devices, memory, code objects.

    python -m flashattn_rocm_doctor.hip_probe BUNDLE.hipfb... LIBRARY...

takes the first LIBRARY that can be loaded, and loads every BUNDLE on each device.
"""

import ctypes
import sys
from pathlib import Path

from flashattn_rocm_doctor.child import report

_SUCCESS = 0


def main(bundles: list[str], libraries: list[str]) -> None:
    """Reports the stages "library", "devices" and, for each of them, "device"."""
    hip = _load(libraries)
    if hip is None:
        return
    version, count = ctypes.c_int(), ctypes.c_int()
    hip.hipRuntimeGetVersion(ctypes.byref(version))
    report("library", path=_path_of_loaded(), version=version.value)
    hip.hipGetErrorName.restype = ctypes.c_char_p
    status = hip.hipGetDeviceCount(ctypes.byref(count))
    report("devices", count=count.value if status == _SUCCESS else 0, error=_error(hip, status))
    for index in range(count.value if status == _SUCCESS else 0):
        report("device", index=index, **_device(hip, index, bundles))


def _load(libraries: list[str]) -> ctypes.CDLL | None:
    errors = []
    for name in libraries:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            errors.append(str(error))
    report("no library", errors=errors)
    return None


def _path_of_loaded() -> str:
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next((line.split()[-1] for line in maps if "libamdhip64" in line), "")


def _error(hip: ctypes.CDLL, status: int) -> str:
    return "" if status == _SUCCESS else f"{hip.hipGetErrorName(status).decode()} ({status})"


def _device(hip: ctypes.CDLL, index: int, bundles: list[str]) -> dict[str, object]:
    name = ctypes.create_string_buffer(256)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    hip.hipSetDevice(index)
    hip.hipDeviceGetName(name, len(name), index)
    facts: dict[str, object] = {"name": name.value.decode()}
    facts["memory_error"] = _error(hip, hip.hipMemGetInfo(ctypes.byref(free), ctypes.byref(total)))
    facts |= {"free": free.value, "total": total.value, "load_error": ""}
    for bundle in map(Path, bundles):
        module = ctypes.c_void_p()
        if error := _error(hip, hip.hipModuleLoadData(ctypes.byref(module), bundle.read_bytes())):
            facts["load_error"] = f"{bundle.name}: {error}"
            break
    return facts


if __name__ == "__main__":
    main(*([each for each in sys.argv[1:] if each.endswith(".hipfb") == of] for of in (True, False)))
