"""Launches code objects on the simulated card and reads back how long they took, through ctypes."""

import ctypes
import json
import os
from pathlib import Path
from typing import Any

LIBRARY_OVERRIDE = "FLASHATTN_SIM_LIBRARY"  # a simulator built elsewhere

_BUFFER_POINTER, _BUFFER_SIZE, _END = 1, 2, 3  # HIP_LAUNCH_PARAM_*


def simulator_library() -> Path:
    """The libamdhip64 that is the simulator: FLASHATTN_SIM_LIBRARY, else the packaged one."""
    packaged = Path(__file__).parents[1] / "lib" / "sim" / "libamdhip64.so"
    return Path(os.environ.get(LIBRARY_OVERRIDE) or packaged)


class TimedCard:
    """The simulated card with one code object loaded; its launches are timed.

    Raises:
        FileNotFoundError: the simulator is not built.
        RuntimeError: a HIP call failed; the text has the simulator's reason.
    """

    def __init__(self, code_object: bytes, buffer_bytes: int) -> None:
        library = simulator_library()
        if not library.is_file():
            raise FileNotFoundError(f"{library} is not there: build the simulator first (make setup)")
        self._hip = ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL)
        self._hip.hipGetErrorName.restype = ctypes.c_char_p
        self._hip.flashattnSimLastFault.restype = ctypes.c_char_p
        self._hip.flashattnSimLastProfile.restype = ctypes.c_char_p
        self._module = ctypes.c_void_p()
        self._call("hipModuleLoadData", ctypes.byref(self._module), code_object)
        self._buffers = [self._allocate(buffer_bytes) for _ in range(2)]

    def close(self) -> None:
        """Frees the buffers and unloads the code object."""
        for buffer in self._buffers:
            self._call("hipFree", buffer)
        self._call("hipModuleUnload", self._module)

    def time(self, kernel: str, groups: int, iterations: int) -> dict[str, Any]:
        """Runs `kernel(in, out, iterations)` in `groups` workgroups of 256; returns its profile."""
        function = ctypes.c_void_p()
        self._call("hipModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
        arguments = b"".join(n.to_bytes(8, "little") for n in (*self._buffers, iterations))
        storage = ctypes.create_string_buffer(arguments, len(arguments))
        size = ctypes.c_size_t(20)
        extra = (ctypes.c_void_p * 5)(
            _BUFFER_POINTER, ctypes.addressof(storage), _BUFFER_SIZE, ctypes.addressof(size), _END
        )
        shape = [ctypes.c_uint(n) for n in (groups, 1, 1, 256, 1, 1, 0)]
        self._hip.flashattnSimSetTimed(1)  # others in this process may have switched it off
        self._call("hipModuleLaunchKernel", function, *shape, None, None, extra)
        profile: dict[str, Any] = json.loads(self._hip.flashattnSimLastProfile())
        return profile

    def _allocate(self, size: int) -> int:
        address = ctypes.c_void_p()
        self._call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(size))
        self._call("hipMemset", address, ctypes.c_int(0), ctypes.c_size_t(size))
        return address.value or 0

    def _call(self, name: str, *arguments: object) -> None:
        converted = [ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments]
        status = getattr(self._hip, name)(*converted)
        if status != 0:
            fault = (self._hip.flashattnSimLastFault() or b"").decode()
            raise RuntimeError(f"{name}: {self._hip.hipGetErrorName(status).decode()}\n{fault}".rstrip())
