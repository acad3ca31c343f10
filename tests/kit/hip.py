"""The simulator's HIP API (flashattn_rocm.sim.hip) for numpy arrays."""

import functools

import numpy as np
from numpy.typing import NDArray

from flashattn_rocm.sim import hip
from flashattn_rocm.sim.hip import LIBRARY, Dim3, HipError, Module

__all__ = ["LIBRARY", "Buffer", "Dim3", "Hip", "HipError", "Module", "simulator"]


class Buffer(hip.Buffer):
    """Device memory that is written from, and read as, an array."""

    def write(self, data: NDArray[np.generic] | bytes) -> None:
        super().write(data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes())

    def read(self) -> NDArray[np.uint8]:
        """The whole buffer as bytes."""
        return np.frombuffer(self.content(), np.uint8)


class Hip(hip.Hip):
    """The simulator, which may use arrays in place."""

    def register_read_only(self, array: NDArray[np.generic]) -> None:
        """Lets kernels read `array` in place; a store to it faults."""
        self.call("flashattnSimHostRegisterReadOnly", array.ctypes.data, array.nbytes)

    def unregister(self, array: NDArray[np.generic]) -> None:
        self.call("hipHostUnregister", array.ctypes.data)


@functools.cache
def simulator() -> Hip:
    """The one simulator of this process."""
    return Hip()
