"""Where launches are measured: the card by HIP events, or the simulated card by its profile."""

import statistics
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch

from flashattn_rocm.profiling.profile import (
    FP16_FLOP_PER_LANE_CLOCK,
    WAVE_LANES,
    longest,
    timed_launches,
)
from flashattn_rocm.sim.hip import simulator

Launch = Callable[[], object]


@dataclass(frozen=True)
class Measurement:
    """One call. What a card's events cannot tell is None.

    Attributes:
        ms: milliseconds.
        peak_tflops: fp16 peak of the card's vector ALUs.
        kernel: the name of the one that took longest.
        cycles: clocks of the compute units.
        valu_busy: per cent.
        hbm_read_bytes: of the whole call.
        hbm_write_bytes: of the whole call.
        sampling_error: relative, of ms; None where nothing is sampled.
    """

    ms: float
    peak_tflops: float
    kernel: str | None = None
    cycles: float | None = None
    valu_busy: float | None = None
    hbm_read_bytes: int | None = None
    hbm_write_bytes: int | None = None
    sampling_error: float | None = None


class Device(Protocol):
    """A device that can measure.

    Attributes:
        backend: "sim" or "hip".
        torch_device: of the tensors that run there.
        description: for the head of a report.
        simulated: whether the figures are a model's.
    """

    backend: str
    torch_device: str
    description: str
    simulated: bool

    def measure(self, launch: Launch) -> Measurement:
        """Measures a call that launches at least one kernel."""


class SimulatedDevice:
    """The simulated card.

    Launches of more than four fills of the card are timed by a sample; with `whole` the other workgroups
    run as well, else they are left out and the result is incomplete.
    """

    backend = "sim"
    torch_device = "cpu"
    simulated = True

    def __init__(self, *, whole: bool = False) -> None:
        self.description = "simulated card (a model's figures, not measured on hardware)"
        self._whole = whole

    def measure(self, launch: Launch) -> Measurement:
        """Sums the simulator's profiles of the launches, and what it takes to start those after the first."""
        with (
            timed_launches() as profiles,
            nullcontext() if self._whole else simulator().sampled_only(),
        ):
            launch()
        card, main = profiles[0].card, longest(profiles)
        ms = sum(p.milliseconds for p in profiles) + (len(profiles) - 1) * card.launch_us / 1e3
        cycles = ms * card.clock_mhz * 1e3
        return Measurement(
            ms=ms,
            peak_tflops=card.peak_tflops(FP16_FLOP_PER_LANE_CLOCK),
            kernel=main.kernel,
            cycles=cycles,
            valu_busy=sum(p.counters["VALUBusy"] * p.clocks for p in profiles) / cycles,
            hbm_read_bytes=sum(p.bytes_of_launch.hbm_read for p in profiles),
            hbm_write_bytes=sum(p.bytes_of_launch.hbm_write for p in profiles),
            sampling_error=main.sampling_error,
        )


class Card:
    """A card, through a ROCm torch: median of some launches, after a warm-up that lets clocks rise."""

    backend = "hip"
    torch_device = "cuda"
    simulated = False

    _WARM_UP_MS = 200.0
    _LAUNCHES = 20

    def __init__(self) -> None:
        properties = torch.cuda.get_device_properties(0)
        self.description = f"{properties.name}, {properties.multi_processor_count} CUs"
        lanes = properties.multi_processor_count * WAVE_LANES
        self._peak_tflops = lanes * FP16_FLOP_PER_LANE_CLOCK * properties.clock_rate * 1e3 / 1e12  # kHz

    def measure(self, launch: Launch) -> Measurement:
        """Milliseconds between HIP events around the launch."""
        spent = 0.0
        while spent < self._WARM_UP_MS:
            spent += self._time(launch)
        ms = statistics.median(self._time(launch) for _ in range(self._LAUNCHES))
        return Measurement(ms=ms, peak_tflops=self._peak_tflops)

    @staticmethod
    def _time(launch: Launch) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        launch()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)


def choose_device(backend: str, *, whole: bool = False) -> Device:
    """The device for a value of FLASHATTN_ROCM_BACKEND; auto: a card if torch has one, else the simulator.

    Raises:
        RuntimeError: "hip" without a card in torch.
        ValueError: another value.
    """
    has_card = torch.version.hip is not None and torch.cuda.is_available()
    if backend not in ("auto", "hip", "sim"):
        raise ValueError(f"FLASHATTN_ROCM_BACKEND={backend!r}, allowed: auto, hip, sim")
    if backend == "hip" and not has_card:
        raise RuntimeError("FLASHATTN_ROCM_BACKEND=hip, but this torch has no ROCm device")
    return Card() if has_card and backend != "sim" else SimulatedDevice(whole=whole)
