"""The device under test through hip-python: a card, or the simulator behind the same HIP API."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flashattn_rocm.profiling.profile import Profile, parse_profile
from flashattn_rocm.sim.hip import simulator_library


class DeviceError(RuntimeError):
    """A device that is not there, or a HIP call that did not succeed."""


@dataclass(frozen=True)
class Launch:
    """A kernel and all that a launch of it takes."""

    function: Any
    grid: tuple[int, int, int]
    threads: int
    arguments: bytes


class HipDevice:
    """Device 0.

    Attributes:
        simulated: whether it is the simulator.
        name: of the card.
        arch: without feature suffixes.
        compute_units: of the card.
        clock_mhz: the highest of the compute units.
        pci: address as in /sys/bus/pci/devices.

    Raises:
        DeviceError: hip-python, the library or a device is missing.
    """

    def __init__(self, *, simulated: bool) -> None:
        self.simulated = simulated
        # hip-python opens libamdhip64.so by name, and takes the one that is open already.
        if simulated and not simulator_library().is_file():
            raise DeviceError(f"{simulator_library()} is missing: build the simulator with `make setup`")
        self._library = ctypes.CDLL(str(simulator_library())) if simulated else None
        try:
            from hip import hip
        except (ImportError, RuntimeError) as error:
            raise DeviceError(
                f"hip-python cannot be used ({error}): pip install hip-python, of ROCm's version"
            ) from error
        self._hip = hip
        if self._library is not None:
            self._library.flashattnSimLastProfile.restype = ctypes.c_char_p
            self._library.flashattnSimLastFault.restype = ctypes.c_char_p
        elif hasattr(ctypes.CDLL("libamdhip64.so"), "flashattnSimVersion"):
            raise DeviceError("the libamdhip64.so on the library path is the simulator: use --backend sim")
        found = hip.hipDeviceProp_t()
        self._call("hipGetDeviceProperties", found, 0)
        self.name: str = found.name.decode()
        self.arch: str = found.gcnArchName.decode().partition(":")[0]
        self.compute_units: int = found.multiProcessorCount
        self.clock_mhz: float = found.clockRate / 1e3
        self.pci = f"{found.pciDomainID:04x}:{found.pciBusID:02x}:{found.pciDeviceID:02x}.0"

    @contextmanager
    def module(self, file: Path) -> Iterator[Any]:
        """A loaded code object."""
        module = self._call("hipModuleLoadData", file.read_bytes())
        try:
            yield module
        finally:
            self._call("hipModuleUnload", module)

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""
        return self._call("hipModuleGetFunction", module, name.encode())

    @contextmanager
    def memory(self, size: int, content: NDArray[np.generic] | None = None) -> Iterator[int]:
        """The address of `size` bytes on the device."""
        pointer = self._call("hipMalloc", size)
        try:
            if content is not None:
                kind = self._hip.hipMemcpyKind.hipMemcpyHostToDevice
                self._call("hipMemcpy", pointer, np.ascontiguousarray(content), size, kind)
            yield int(pointer)
        finally:
            self._call("hipFree", pointer)

    def read(self, address: int, into: NDArray[np.generic]) -> None:
        """Fills an array from the device."""
        kind = self._hip.hipMemcpyKind.hipMemcpyDeviceToHost
        self._call("hipMemcpy", into, address, into.nbytes, kind)

    def queue(self, launch: Launch) -> None:
        """Starts a kernel; the simulator also ends it."""
        argument = _as_struct(launch.arguments)
        self._call(
            "hipModuleLaunchKernel",
            *(launch.function, *launch.grid, launch.threads, 1, 1),
            sharedMemBytes=0,
            stream=None,
            kernelParams=None,
            extra=(argument,),
        )

    def run(self, launch: Launch) -> None:
        """Runs a kernel to its end."""
        self.queue(launch)
        self._call("hipDeviceSynchronize")

    def profile(self, launch: Launch) -> Profile:
        """The simulator's account of a launch."""
        assert self._library is not None, "only the simulator keeps an account"
        self._library.flashattnSimSetTimed(1)
        try:
            self.run(launch)
        finally:
            self._library.flashattnSimSetTimed(0)
        return parse_profile(self._library.flashattnSimLastProfile().decode())

    def milliseconds(self, launch: Launch, count: int, meanwhile: Callable[[], object]) -> list[float]:
        """The times of `count` launches in a row, by events; calls `meanwhile` while they run."""
        events = [self._call("hipEventCreate") for _ in range(count + 1)]
        try:
            self._call("hipEventRecord", events[0], None)
            for event in events[1:]:
                self.queue(launch)
                self._call("hipEventRecord", event, None)
            meanwhile()
            self._call("hipEventSynchronize", events[-1])
            return [self._call("hipEventElapsedTime", *pair) for pair in pairwise(events)]
        finally:
            for event in events:
                self._call("hipEventDestroy", event)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        status, *values = getattr(self._hip, name)(*arguments, **options)
        if status != self._hip.hipError_t.hipSuccess:
            fault = self._library.flashattnSimLastFault() if self._library is not None else None
            raise DeviceError(f"{name}: {status.name}" + (f": {fault.decode()}" if fault else ""))
        return values[0] if values else None


def _as_struct(packed: bytes) -> ctypes.Structure:
    """hip-python passes a structure by value, and of an array its address."""

    class Argument(ctypes.Structure):
        _fields_ = [("bytes", ctypes.c_char * len(packed))]

    return Argument.from_buffer_copy(packed)
