"""The packaged simulator through its HIP API, for code objects that are not ours."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIBRARY = Path(__file__).parents[1] / "lib" / "sim" / "libamdhip64.so"

Dim3 = tuple[int, int, int]

_HOST_TO_DEVICE = 1
# hipModuleLaunchKernel's `extra`: the packed arguments by address and size. Unlike an array of pointers it
# lets the runtime see that their size is wrong.
_LAUNCH_PARAM_BUFFER_POINTER = 1
_LAUNCH_PARAM_BUFFER_SIZE = 2
_LAUNCH_PARAM_END = 3


class HipError(RuntimeError):
    """A HIP call that failed; the text has the call, HIP's name for the error and the simulator's words.

    Attributes:
        name: e.g. "hipErrorLaunchFailure".
    """

    def __init__(self, call: str, name: str, fault: str) -> None:
        super().__init__(f"{call} failed: {name}" + (f"\n{fault}" if fault else ""))
        self.name = name


class Simulator:
    """The simulator's HIP runtime, opened by path so that no other libamdhip64 is picked up."""

    def __init__(self, library: Path = LIBRARY) -> None:
        if not library.exists():
            raise FileNotFoundError(f"{library} is missing: reinstall flashattn_rocm with the simulator")
        # The exception has the fault's text; the simulator need not print it as well.
        os.environ.setdefault("FLASHATTN_SIM_LOG", "0")
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_LOCAL)
        for text in ("hipGetErrorName", "flashattnSimLastFault", "flashattnSimLastProfile"):
            getattr(self._library, text).restype = ctypes.c_char_p
        self._call("hipInit", ctypes.c_uint(0))

    @contextmanager
    def module(self, code_object: Path) -> Iterator[ctypes.c_void_p]:
        """Loads a code object, and unloads it at the end of the block."""
        handle = ctypes.c_void_p()
        self._call("hipModuleLoad", ctypes.byref(handle), os.fsencode(code_object))
        try:
            yield handle
        finally:
            self._call("hipModuleUnload", handle)

    @contextmanager
    def buffer(self, content: bytes) -> Iterator[int]:
        """Device memory with this content; gives its address, and frees it at the end of the block."""
        address = ctypes.c_void_p()
        size = ctypes.c_size_t(len(content))
        self._call("hipMalloc", ctypes.byref(address), size)
        try:
            self._call("hipMemcpy", address, content, size, ctypes.c_int(_HOST_TO_DEVICE))
            yield address.value or 0
        finally:
            self._call("hipFree", address)

    def launch_timed(
        self,
        module: ctypes.c_void_p,
        kernel: str,
        grid: Dim3,
        block: Dim3,
        dynamic_lds: int,
        arguments: bytes,
    ) -> str:
        """Runs a kernel to its end on the timing model.

        Args:
            module: from module().
            kernel: its name.
            grid: workgroups.
            block: work-items of a workgroup.
            dynamic_lds: bytes.
            arguments: the packed explicit arguments.

        Returns:
            The profile as JSON.

        Raises:
            HipError: there is no such kernel, the card refuses the launch, or the kernel faults.
        """
        function = ctypes.c_void_p()
        self._call("hipModuleGetFunction", ctypes.byref(function), module, kernel.encode())
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
        self._library.flashattnSimSetTimed(1)
        try:
            self._call("hipModuleLaunchKernel", function, *shape, None, None, extra)
        finally:
            self._library.flashattnSimSetTimed(0)
        return self._library.flashattnSimLastProfile().decode()

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._library, name)(*arguments)
        if status != 0:
            fault = self._library.flashattnSimLastFault() or b""
            raise HipError(name, self._library.hipGetErrorName(status).decode(), fault.decode())
