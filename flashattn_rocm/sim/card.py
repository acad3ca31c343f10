"""Times kernels of the shape `kernel(in, out, iterations)` on the simulated card."""

import ctypes
import json
import struct
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from flashattn_rocm.sim.hip import Buffer, HipError, Module, simulator

GROUP_THREADS = 256


class TimedCard:
    """The simulated card with code objects and two buffers, which hold zeros.

    Raises:
        FileNotFoundError: the simulator is not built.
        HipError: a HIP call failed; the text has the simulator's reason.
    """

    def __init__(self, code_objects: Sequence[bytes], buffer_bytes: int) -> None:
        self._hip = simulator()
        with ExitStack() as stack:
            self._modules = [stack.enter_context(Module(self._hip, code)) for code in code_objects]
            self._buffers = [stack.enter_context(Buffer(self._hip, buffer_bytes)) for _ in range(2)]
            for buffer in self._buffers:
                self._hip.call("hipMemset", buffer.address, 0, buffer_bytes)
            self._held = stack.pop_all()

    def close(self) -> None:
        """Frees the buffers and unloads the code objects."""
        self._held.close()

    def time(self, kernel: str, groups: int, iterations: int) -> dict[str, Any]:
        """The profile of a launch of `groups` workgroups of GROUP_THREADS."""
        profile: dict[str, Any] = json.loads(
            self._hip.launch_timed(
                self._function(kernel),
                self._arguments(iterations),
                grid=(groups, 1, 1),
                block=(GROUP_THREADS, 1, 1),
            )
        )
        return profile

    def microseconds_between_events(self, kernel: str, groups: int, iterations: int) -> float:
        """What hipEventElapsedTime says of a launch."""
        elapsed = ctypes.c_float()
        events = [ctypes.c_void_p() for _ in range(2)]
        for event in events:
            self._hip.call("hipEventCreate", ctypes.byref(event))
        try:
            self._hip.call("hipEventRecord", events[0], None)
            self._hip.launch(
                self._function(kernel),
                self._arguments(iterations),
                grid=(groups, 1, 1),
                block=(GROUP_THREADS, 1, 1),
            )
            self._hip.call("hipEventRecord", events[1], None)
            self._hip.call("hipEventElapsedTime", ctypes.byref(elapsed), *events)
        finally:
            for event in events:
                self._hip.call("hipEventDestroy", event)
        return elapsed.value * 1e3

    def _arguments(self, iterations: int) -> bytes:
        return struct.pack("<QQI", *(buffer.address for buffer in self._buffers), iterations)

    def _function(self, kernel: str) -> ctypes.c_void_p:
        for module in self._modules[:-1]:
            try:
                return module.function(kernel)
            except HipError as error:
                if error.name != "hipErrorNotFound":
                    raise
        return self._modules[-1].function(kernel)
