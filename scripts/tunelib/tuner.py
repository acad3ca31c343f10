"""One tuning run: compile, check, time and record every tile, whatever each of them does."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from buildlib.errors import BuildError
from buildlib.options import max_jobs
from buildlib.tile_config import TileKernel, TileShape
from tunelib.bench import Bench
from tunelib.compiler import Compiled, TileCompiler
from tunelib.hip_device import DeviceError, HipDevice
from tunelib.journal import Journal
from tunelib.trial import Trial, Verdict


class Tuner:
    """Tries tiles on a device.

    Args:
        device: to run on.
        bench: of that device.
        compiler: of tiles.
        journal: that remembers trials.
        seconds: after which no trial is begun; None: no limit.
    """

    def __init__(
        self,
        device: HipDevice,
        bench: Bench,
        compiler: TileCompiler,
        journal: Journal,
        seconds: float | None = None,
    ) -> None:
        self._device = device
        self._bench = bench
        self._compiler = compiler
        self._journal = journal
        self._end = None if seconds is None else time.monotonic() + seconds

    def run(self, tiles: Sequence[TileShape]) -> Iterator[Trial]:
        """Yields a trial for each tile in turn, at once where the journal has it.

        The iterator ends early when the time is over.
        """
        missing = [tile for tile in tiles if tile.name not in self._journal.trials]
        pool = ThreadPoolExecutor(max_jobs())
        try:
            compiling = {
                tile.name: pool.submit(self._compiler.compile, tile, self._device.arch) for tile in missing
            }
            for tile in tiles:
                if tile.name in self._journal.trials:
                    yield self._journal.trials[tile.name]
                    continue
                if self._end is not None and time.monotonic() > self._end:
                    return
                trial = self._try(tile, compiling[tile.name])
                self._journal.end(trial)
                yield trial
        finally:
            pool.shutdown(cancel_futures=True)

    def _try(self, tile: TileShape, compiling: "Future[Compiled]") -> Trial:
        try:
            built = compiling.result()
        except BuildError as error:
            return Trial(tile, Verdict.NO_COMPILE, str(error))
        found = built.resources
        trial = Trial(
            tile,
            Verdict.CRASHED,  # what stands if a launch ends the process
            vgprs=found.vgprs,
            sgprs=found.sgprs,
            spills=built.spills,
            lds_bytes=found.lds_bytes,
            workgroups_per_cu=built.workgroups_per_cu,
        )
        if built.spills or found.scratch_bytes:
            note = f"{built.spills} registers, {found.scratch_bytes} bytes of scratch"
            return replace(trial, verdict=Verdict.SPILLS, note=note)
        if built.workgroups_per_cu == 0:
            return replace(trial, verdict=Verdict.FAILED, note="its waves do not fit a compute unit")
        self._journal.begin(trial)
        try:
            with self._device.module(built.file) as module:
                return self._measure(trial, built.kernel, self._device.function(module, built.kernel.name))
        except DeviceError as error:
            return replace(trial, verdict=Verdict.FAILED, note=str(error))
        except KeyboardInterrupt:
            self._journal.stop(tile.name)
            raise

    def _measure(self, trial: Trial, kernel: TileKernel, function: Any) -> Trial:
        checks = self._bench.check(kernel, function)
        worst = max(checks, key=lambda check: check.max_error / max(check.allowed_error, 1e-30))
        trial = replace(trial, max_error=worst.max_error, allowed_error=worst.allowed_error)
        broken = [text for check in checks for text in check.violations]
        if broken:
            return replace(trial, verdict=Verdict.WRONG, note="; ".join(broken))
        speed = self._bench.speed(kernel, function, trial.workgroups_per_cu)
        return replace(
            trial,
            verdict=Verdict.TIMED,
            clocks=speed.clocks,
            cycles=round(speed.full.clocks),
            tflops=speed.tflops,
            valu_busy=speed.full.valu_busy,
            causes=speed.full.causes,
            clock_mhz=speed.full.clock_mhz,
            watts=speed.full.watts,
        )
