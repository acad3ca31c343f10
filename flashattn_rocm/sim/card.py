"""Times the kernels of one code object on the simulated card."""

import json
import struct
from contextlib import ExitStack
from typing import Any

from flashattn_rocm.sim.hip import Buffer, Module, simulator

GROUP_THREADS = 256


class TimedCard:
    """The simulated card with one code object and two buffers, which hold zeros.

    Raises:
        FileNotFoundError: the simulator is not built.
        HipError: a HIP call failed; the text has the simulator's reason.
    """

    def __init__(self, code_object: bytes, buffer_bytes: int) -> None:
        self._hip = simulator()
        with ExitStack() as stack:
            self._module = stack.enter_context(Module(self._hip, code_object))
            self._buffers = [stack.enter_context(Buffer(self._hip, buffer_bytes)) for _ in range(2)]
            for buffer in self._buffers:
                self._hip.call("hipMemset", buffer.address, 0, buffer_bytes)
            self._held = stack.pop_all()

    def close(self) -> None:
        """Frees the buffers and unloads the code object."""
        self._held.close()

    def time(self, kernel: str, groups: int, iterations: int) -> dict[str, Any]:
        """Runs `kernel(in, out, iterations)` in `groups` workgroups of 256; returns its profile."""
        arguments = struct.pack("<QQI", *(buffer.address for buffer in self._buffers), iterations)
        profile: dict[str, Any] = json.loads(
            self._hip.launch_timed(
                self._module.function(kernel), arguments, grid=(groups, 1, 1), block=(GROUP_THREADS, 1, 1)
            )
        )
        return profile
