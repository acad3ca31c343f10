"""Whole launches of kernels that compete for the same problem: what an estimate cannot tell apart."""

import math
import time
from collections.abc import Collection

from buildlib.errors import BuildError
from buildlib.tile_config import FwdKernel
from flashattn_rocm.profiling.work import ForwardShape
from tunelib.compiler import TileCompiler
from tunelib.fwd_bench import ForwardBench
from tunelib.fwd_choose import OutOfTimeError
from tunelib.hip_device import DeviceError, HipDevice
from tunelib.journal import Journal


class WholeLaunches:
    """Launches each kernel once for each problem; the journal remembers.

    Attributes:
        means: geometric mean of the clocks of a set of tiles.
        out_of_time: whether some were left out.

    Args:
        device: to run on.
        bench: of that device.
        compiler: of kernels.
        journal: that remembers launches.
        seconds: after which none is begun; None: no limit.
    """

    def __init__(
        self,
        device: HipDevice,
        bench: ForwardBench,
        compiler: TileCompiler,
        journal: Journal,
        seconds: float | None = None,
    ) -> None:
        self._device = device
        self._bench = bench
        self._compiler = compiler
        self._journal = journal
        self._seconds = seconds
        self._end: float | None = None
        self.means: dict[str, float] = {}
        self.out_of_time = False

    def compared(self, tiles: Collection[str], clocks: float) -> None:
        """See Launches."""
        self.means[" ".join(sorted(tiles))] = clocks

    def clocks(self, kernel: FwdKernel, shape: ForwardShape) -> float:
        """See Launches."""
        causal = ",causal" if shape.causal else ""
        sizes = (shape.batch, shape.seqlen_q, shape.seqlen_k, shape.heads, shape.heads_kv, shape.head_dim)
        name = f"{kernel.name} {','.join(map(str, sizes))}{causal}"
        if name not in self._journal.launches:
            self._check_time()
            self._journal.begin_launch(name)
            try:
                self._journal.end_launch(name, self._launch(kernel, shape))
            except (BuildError, DeviceError):
                pass  # the beginning stands
            except KeyboardInterrupt:
                self._journal.stop(name)
                raise
        clocks = self._journal.launches[name]
        return math.inf if clocks is None else clocks

    def _check_time(self) -> None:
        if self._seconds is None:
            return
        now = time.monotonic()
        self._end = self._end or now + self._seconds
        if now > self._end:
            self.out_of_time = True
            raise OutOfTimeError

    def _launch(self, kernel: FwdKernel, shape: ForwardShape) -> float:
        built = self._compiler.compile_kernel(kernel, self._device.arch)
        with self._device.module(built.file) as module:
            return self._bench.whole(kernel, self._device.function(module, kernel.name), shape).clocks
