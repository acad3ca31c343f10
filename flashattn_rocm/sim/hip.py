"""HIP through ctypes: code objects, device memory and launches, without torch. Mostly the simulator's."""

import ctypes
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

LIBRARY = Path(__file__).parents[1] / "lib" / "sim" / "libamdhip64.so"
LIBRARY_OVERRIDE = "FLASHATTN_SIM_LIBRARY"  # a simulator built elsewhere, e.g. with sanitizers

Dim3 = tuple[int, int, int]

_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
# hipModuleLaunchKernel's `extra`: the packed arguments by address and size. Unlike an array of pointers it
# lets the runtime see that their size is wrong.
_LAUNCH_PARAM_BUFFER_POINTER = 1
_LAUNCH_PARAM_BUFFER_SIZE = 2
_LAUNCH_PARAM_END = 3


def simulator_library() -> Path:
    """The libamdhip64 that is the simulator: FLASHATTN_SIM_LIBRARY, else the packaged one."""
    return Path(os.environ.get(LIBRARY_OVERRIDE) or LIBRARY)


class HipError(RuntimeError):
    """A HIP call that did not return hipSuccess; the text has the call, the error and the simulator's words.

    Attributes:
        name: the HIP name of the error, e.g. "hipErrorLaunchFailure".
        fault: the simulator's text for the last fault of this thread, "" if there is none.
    """

    def __init__(self, call: str, name: str, fault: str) -> None:
        super().__init__(f"{call} failed: {name}" + (f"\n{fault}" if fault else ""))
        self.name = name
        self.fault = fault


class Hip:
    """A HIP runtime, opened by path so that no other libamdhip64 is picked up; by default the simulator's.

    Raises:
        FileNotFoundError: the simulator is not built.
    """

    def __init__(self, library: Path | None = None) -> None:
        library = library or simulator_library()
        if not library.is_file():
            raise FileNotFoundError(
                f"{library} is missing: build the simulator (make setup), or reinstall with it"
            )
        # HipError has the fault's text; the simulator need not print it as well.
        os.environ.setdefault("FLASHATTN_SIM_LOG", "0")
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL)
        self._library.hipGetErrorName.restype = ctypes.c_char_p
        self._simulated = hasattr(self._library, "flashattnSimVersion")
        if self._simulated:
            self._library.flashattnSimLastFault.restype = ctypes.c_char_p
            self._library.flashattnSimLastProfile.restype = ctypes.c_char_p
            self._library.flashattnSimWaveInstructions.restype = ctypes.c_uint64
        self.call("hipInit", 0)

    def call(self, name: str, *arguments: object) -> None:
        """Calls one HIP function; ints are passed as 64-bit values. Raises HipError."""
        converted = [ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments]
        status = getattr(self._library, name)(*converted)
        if status != 0:
            fault = (self._library.flashattnSimLastFault() if self._simulated else None) or b""
            raise HipError(name, self._library.hipGetErrorName(status).decode(), fault.decode())

    def launch(
        self,
        function: ctypes.c_void_p,
        arguments: bytes,
        *,
        grid: Dim3 = (1, 1, 1),
        block: Dim3 = (64, 1, 1),
        dynamic_lds: int = 0,
        stream: int | None = None,
    ) -> None:
        """Runs a kernel; without a stream to its end.

        Args:
            function: from Module.function().
            arguments: the packed explicit arguments.
            grid: workgroups.
            block: work-items of a workgroup.
            dynamic_lds: bytes.
            stream: a hipStream_t that the kernel is put into; None: the null stream.

        Raises:
            HipError: the card refuses the launch; hipErrorLaunchFailure: the kernel faults.
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
        shape = [ctypes.c_uint(n) for n in (*grid, *block, dynamic_lds)]
        self.call("hipModuleLaunchKernel", function, *shape, ctypes.c_void_p(stream), None, extra)
        if stream is None:
            self.call("hipDeviceSynchronize")

    def launch_timed(
        self,
        function: ctypes.c_void_p,
        arguments: bytes,
        *,
        grid: Dim3 = (1, 1, 1),
        block: Dim3 = (64, 1, 1),
        dynamic_lds: int = 0,
    ) -> str:
        """As launch(), on the timing model; returns the profile as JSON."""
        self._library.flashattnSimSetTimed(1)
        try:
            self.launch(function, arguments, grid=grid, block=block, dynamic_lds=dynamic_lds)
        finally:
            self._library.flashattnSimSetTimed(0)
        return self._library.flashattnSimLastProfile().decode()

    @contextmanager
    def sampled_only(self) -> Iterator[None]:
        """Timed launches inside the block run only as many workgroups as their time needs.

        What they compute is incomplete then. A launch that fits into four fills of the card is timed as ever.
        """
        self._library.flashattnSimSetSampledOnly(1)
        try:
            yield
        finally:
            self._library.flashattnSimSetSampledOnly(0)

    def wave_instructions(self) -> int:
        """Wave instructions executed since the library was loaded."""
        return int(self._library.flashattnSimWaveInstructions())


class Buffer:
    """Device memory of a fixed size, released by `free` or at the end of a `with` block."""

    def __init__(self, hip: Hip, size: int) -> None:
        self.hip = hip
        self.size = size
        address = ctypes.c_void_p()
        hip.call("hipMalloc", ctypes.byref(address), size)
        self.address: int = address.value or 0

    def write(self, data: bytes) -> None:
        """Copies `data` to the start of the buffer."""
        if len(data) > self.size:
            raise ValueError(f"data has {len(data)} bytes, the buffer holds {self.size}")
        self.hip.call("hipMemcpy", self.address, data, len(data), _HOST_TO_DEVICE)

    def content(self) -> bytearray:
        """The whole buffer."""
        content = bytearray(self.size)
        view = (ctypes.c_char * self.size).from_buffer(content)
        self.hip.call("hipMemcpy", ctypes.byref(view), self.address, self.size, _DEVICE_TO_HOST)
        return content

    def free(self) -> None:
        """Releases the memory; further calls do nothing."""
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
    """A loaded code object, given by its bytes or its file; unloaded at the end of a `with` block."""

    def __init__(self, hip: Hip, code_object: bytes | Path) -> None:
        self.hip = hip
        self._handle = ctypes.c_void_p()
        if isinstance(code_object, Path):
            hip.call("hipModuleLoad", ctypes.byref(self._handle), os.fsencode(code_object))
        else:
            hip.call("hipModuleLoadData", ctypes.byref(self._handle), code_object)

    def function(self, name: str) -> ctypes.c_void_p:
        """The kernel `name`; raises HipError (hipErrorNotFound) when the object has no such kernel."""
        handle = ctypes.c_void_p()
        self.hip.call("hipModuleGetFunction", ctypes.byref(handle), self._handle, name.encode())
        return handle

    def unload(self) -> None:
        """Ends the code object and its functions."""
        self.hip.call("hipModuleUnload", self._handle)

    def __enter__(self) -> "Module":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.unload()


@functools.cache
def simulator() -> Hip:
    """The one simulator of this process."""
    return Hip()
