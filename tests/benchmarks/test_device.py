"""Measuring on the simulated card, and on a card whose torch is a double."""

import types

import pytest
import torch

from flashattn_rocm import flash_attn_func
from flashattn_rocm.benchmarks import device
from flashattn_rocm.benchmarks.device import Card, SimulatedDevice, choose_device
from flashattn_rocm.profiling.profile import timed_launches


def forward():
    q, k, v = torch.randn(3, 1, 64, 2, 32).half()
    return flash_attn_func(q, k, v)


def test_the_simulated_card_tells_everything():
    measured = SimulatedDevice().measure(forward)
    assert measured.kernel is not None
    assert measured.kernel.startswith("flashattn_fwd")
    assert measured.ms > 0
    assert measured.peak_tflops == pytest.approx(26.5, abs=0.1)
    assert None not in (measured.cycles, measured.valu_busy, measured.hbm_read_bytes, measured.sampling_error)


def test_a_call_of_several_kernels_is_their_sum_and_the_starts_between_them():
    once = SimulatedDevice().measure(forward)
    twice = SimulatedDevice().measure(lambda: (forward(), forward()))
    launch_ms = 0.004  # configs/gfx906.toml
    assert twice.ms == pytest.approx(2 * once.ms + launch_ms, rel=0.02)
    assert twice.cycles == pytest.approx(twice.ms * 1725e3)
    assert twice.hbm_write_bytes == pytest.approx(2 * once.hbm_write_bytes, rel=0.1)
    assert 0.5 * once.valu_busy < twice.valu_busy < once.valu_busy


def test_timed_launches_gives_those_of_the_block_in_their_order():
    with timed_launches() as profiles:
        forward()
        forward()
    assert [profile.kernel for profile in profiles] == [profiles[0].kernel] * 2
    with timed_launches() as none:
        pass
    assert none == []


@pytest.mark.parametrize("whole", [False, True])
def test_workgroups_are_left_out_unless_all_are_asked_for(whole, monkeypatch):
    asked = []
    simulator = types.SimpleNamespace(sampled_only=lambda: asked.append(1) or device.nullcontext())
    monkeypatch.setattr(device, "simulator", lambda: simulator)
    SimulatedDevice(whole=whole).measure(forward)
    assert bool(asked) is not whole


class Event:
    """Of a clock that each launch moves by the next of `steps` milliseconds."""

    now, steps = 0.0, []

    def __init__(self, enable_timing) -> None:
        assert enable_timing

    def record(self):
        self.at = Event.now

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return end.at - self.at


@pytest.fixture
def card(monkeypatch):
    properties = types.SimpleNamespace(name="Some card", multi_processor_count=60, clock_rate=1_725_000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    return Card()


def test_a_card_gives_the_median_after_a_warm_up(card):
    # 250 ms of warm-up, then 20 launches of 1 to 20 ms.
    steps = iter([125.0, 125.0, *map(float, range(20, 0, -1))])

    def launch():
        Event.now += next(steps)

    measured = card.measure(launch)
    assert measured.ms == pytest.approx(10.5)
    assert measured.peak_tflops == pytest.approx(26.5, abs=0.1)
    assert (measured.cycles, measured.valu_busy, measured.hbm_read_bytes) == (None, None, None)


def test_the_backend_is_the_package_s_own_choice(card, monkeypatch):
    assert isinstance(choose_device("auto"), SimulatedDevice)
    with pytest.raises(RuntimeError, match="no ROCm device"):
        choose_device("hip")
    with pytest.raises(ValueError, match="'cuda', allowed: auto, hip, sim"):
        choose_device("cuda")
    monkeypatch.setattr(torch.version, "hip", "7.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert isinstance(choose_device("auto"), Card)
    assert isinstance(choose_device("sim"), SimulatedDevice)
