"""Cards that must not be measured, by the files of their driver."""

import re

import pytest

from tunelib.card_state import CardState

_PCI = "0000:03:00.0"
_CLOCKS = "0: 701Mhz\n1: 1373Mhz{}\n2: 1725Mhz{}\n"


@pytest.fixture
def card(tmp_path):
    """A cool card at rest; returns a function that changes a file."""
    folder = tmp_path / _PCI
    (folder / "hwmon/hwmon3").mkdir(parents=True)

    def write(name, text):
        (folder / name).write_text(f"{text}\n")

    write("gpu_busy_percent", 0)
    write("mem_info_vram_used", 20 << 20)
    write("pp_dpm_sclk", _CLOCKS.format("", " *"))
    write("hwmon/hwmon3/power1_average", 181_000_000)
    write("hwmon/hwmon3/temp1_input", 61_000)
    write("hwmon/hwmon3/temp1_crit", 100_000)
    return write


@pytest.fixture
def state(card, tmp_path):
    return CardState(_PCI, tmp_path)


def test_a_card_at_rest_may_be_measured(state):
    sample = state.sample()
    assert (sample.clock_mhz, sample.watts, sample.celsius) == pytest.approx((1725, 181, 61))
    assert state.why_busy() == state.why_throttled() == ""


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("gpu_busy_percent", 97, "busy: 97 %"),
        ("mem_info_vram_used", 3 << 30, r"holds 3\.0 GiB"),
        ("hwmon/hwmon3/temp1_input", 97_000, "hot and throttles: 97 of 100 degrees"),
    ],
)
def test_a_card_that_is_used_or_hot_is_refused(card, state, name, value, reason):
    card(name, value)
    assert re.search(reason, state.why_busy())


def test_a_clock_that_fell_under_load_is_throttling(card, state):
    state.sample()
    card("pp_dpm_sclk", _CLOCKS.format(" *", ""))
    state.sample()
    card("pp_dpm_sclk", _CLOCKS.format("", " *"))
    state.sample()
    assert "throttled: its clock fell to 1373 of 1725 MHz" in state.why_throttled()


def test_a_driver_that_says_nothing_does_not_stop_a_run(tmp_path):
    state = CardState("0000:00:00.0", tmp_path)
    sample = state.sample()
    assert (sample.clock_mhz, sample.watts, sample.celsius) == (None, None, None)
    assert state.why_busy() == state.why_throttled() == ""
