"""A thin ctypes view of the packaged simulator's libamdhip64.so, for tests that launch code objects.

Device pointers are host addresses here (the simulator maps them one to one), but every transfer
goes through hipMemcpy, so that the harness works like on a card.
"""

import ctypes
import functools
import os
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

LIBRARY = Path(__file__).parents[2] / "flashattn_rocm" / "lib" / "sim" / "libamdhip64.so"
LIBRARY_OVERRIDE = "FLASHATTN_SIM_LIBRARY"  # a library built elsewhere, e.g. with sanitizers

_LAUNCH_PARAM_BUFFER_POINTER = 1
_LAUNCH_PARAM_BUFFER_SIZE = 2
_LAUNCH_PARAM_END = 3
_HOST_TO_DEVICE = 1
_DEVICE_TO_HOST = 2

Dim3 = tuple[int, int, int]


class HipError(RuntimeError):
    """A HIP call that did not return hipSuccess.

    Attributes:
        name: the HIP name of the error, e.g. "hipErrorLaunchFailure".
        fault: the simulator's text for the last fault of this thread, "" if there is none.
    """

    def __init__(self, call: str, name: str, fault: str) -> None:
        super().__init__(f"{call}: {name}" + (f"\n{fault}" if fault else ""))
        self.name = name
        self.fault = fault


class Buffer:
    """Device memory of a fixed size, released by `free` or at the end of a `with` block."""

    def __init__(self, hip: "Hip", size: int) -> None:
        self.hip = hip
        self.size = size
        address = ctypes.c_void_p()
        hip.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(size))
        self.address: int = address.value or 0

    def write(self, data: NDArray[np.generic] | bytes) -> None:
        """Copies `data` to the start of the buffer."""
        raw = data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes()
        if len(raw) > self.size:
            raise ValueError(f"data has {len(raw)} bytes, the buffer holds {self.size}")
        self.hip.call("hipMemcpy", self.address, raw, ctypes.c_size_t(len(raw)), _HOST_TO_DEVICE)

    def read(self) -> NDArray[np.uint8]:
        """The whole buffer as bytes."""
        out = np.empty(self.size, np.uint8)
        self.hip.call("hipMemcpy", out.ctypes.data, self.address, ctypes.c_size_t(self.size), _DEVICE_TO_HOST)
        return out

    def free(self) -> None:
        if self.address:
            self.hip.call("hipFree", self.address)
            self.address = 0

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()


class Module:
    """A loaded code object."""

    def __init__(self, hip: "Hip", code_object: bytes) -> None:
        self.hip = hip
        self._handle = ctypes.c_void_p()
        hip.call("hipModuleLoadData", ctypes.byref(self._handle), code_object)

    def function(self, name: str) -> ctypes.c_void_p:
        """The kernel `name`; raises HipError (hipErrorNotFound) when the object has no such kernel."""
        handle = ctypes.c_void_p()
        self.hip.call("hipModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
        return handle

    def unload(self) -> None:
        self.hip.call("hipModuleUnload", self._handle)


class Hip:
    """The simulator's HIP runtime, opened by path so that no other libamdhip64 is picked up."""

    def __init__(self, library: Path) -> None:
        if not library.exists():
            raise FileNotFoundError(f"{library}: build the simulator first (make setup)")
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL)
        self._library.hipGetErrorName.restype = ctypes.c_char_p
        self._library.flashattnSimLastFault.restype = ctypes.c_char_p
        self._library.flashattnSimWaveInstructions.restype = ctypes.c_uint64
        self.call("hipInit", 0)

    def call(self, name: str, *arguments: object) -> None:
        """Calls one HIP function; ints are passed as 64-bit values. Raises HipError."""
        converted = [ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments]
        status = getattr(self._library, name)(*converted)
        if status != 0:
            fault = self._library.flashattnSimLastFault() or b""
            raise HipError(name, self._library.hipGetErrorName(status).decode(), fault.decode())

    def launch(
        self,
        function: ctypes.c_void_p,
        arguments: bytes,
        *,
        grid: Dim3 = (1, 1, 1),
        block: Dim3 = (64, 1, 1),
        dynamic_lds: int = 0,
    ) -> None:
        """Runs a kernel to its end. `arguments` is the packed kernarg segment, `grid` counts workgroups.

        Raises HipError; a fault inside the kernel has name hipErrorLaunchFailure.
        """
        storage = ctypes.create_string_buffer(arguments, max(len(arguments), 1))
        size = ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(
            _LAUNCH_PARAM_BUFFER_POINTER,
            ctypes.addressof(storage),
            _LAUNCH_PARAM_BUFFER_SIZE,
            ctypes.addressof(size),
            _LAUNCH_PARAM_END,
        )
        shape = [ctypes.c_uint(n) for n in (*grid, *block)]
        lds = ctypes.c_uint(dynamic_lds)
        self.call("hipModuleLaunchKernel", function, *shape, lds, None, None, extra)
        self.call("hipDeviceSynchronize")

    def register_read_only(self, array: NDArray[np.generic]) -> None:
        """Lets kernels read `array` in place; a store to it faults."""
        size = ctypes.c_size_t(array.nbytes)
        self.call("flashattnSimHostRegisterReadOnly", array.ctypes.data, size)

    def unregister(self, array: NDArray[np.generic]) -> None:
        self.call("hipHostUnregister", array.ctypes.data)

    def wave_instructions(self) -> int:
        """Wave instructions executed since the library was loaded."""
        return int(self._library.flashattnSimWaveInstructions())


@functools.cache
def simulator() -> Hip:
    """The one simulator of this process."""
    return Hip(Path(os.environ.get(LIBRARY_OVERRIDE, LIBRARY)))
