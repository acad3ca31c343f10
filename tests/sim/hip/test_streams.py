"""Streams, events, contexts, host functions and error names."""

import json

import pytest


@pytest.fixture(scope="module")
def streams(run_python):
    return json.loads(run_python("streams"))


def test_streams_keep_what_they_were_created_with(streams):
    assert streams["flags"] == 1
    priority, greatest, least = streams["priority"]
    assert priority == greatest < least


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("never recorded", "hipErrorInvalidHandle"),
        ("start never recorded", "hipErrorInvalidHandle"),
        ("record", "hipSuccess"),
        ("record null stream", "hipSuccess"),
        ("record untimed", "hipSuccess"),
        ("untimed", "hipErrorInvalidHandle"),
        ("elapsed", "hipSuccess"),
        ("query event", "hipSuccess"),
        ("synchronize event", "hipSuccess"),
        ("wait", "hipSuccess"),
        ("query", "hipSuccess"),
        ("synchronize", "hipSuccess"),
        ("per thread", "hipSuccess"),
        ("bad flags", "hipErrorInvalidValue"),
        ("destroy null", "hipErrorInvalidHandle"),
        ("destroy", "hipSuccess"),
        ("destroyed", "hipErrorInvalidHandle"),
        ("destroy event", "hipSuccess"),
        ("destroyed event", "hipErrorInvalidHandle"),
        ("bad device", "hipErrorInvalidDevice"),
        ("bad init", "hipErrorInvalidValue"),
    ],
)
def test_stream_and_event_calls(streams, case, expected):
    code = streams["codes"][case].replace("hipErrorInvalidResourceHandle", "hipErrorInvalidHandle")
    assert code == expected


def test_no_time_passes_without_a_launch(streams):
    assert streams["elapsed ms"] == 0.0


@pytest.fixture(scope="module")
def times(run_python, kernels):
    return json.loads(run_python("event_times", kernels))


def test_a_launch_takes_the_simulated_time_of_its_profile_and_of_its_start(times):
    assert times["profile ms"] > 0
    assert times["launch ms"] == 4e-3
    expected = times["profile ms"] + times["launch ms"]
    assert times["elapsed ms"] == pytest.approx(expected, rel=1e-6)  # elapsed is a float32


def test_times_of_launches_add_up(times):
    expected = times["profile ms"] + times["second profile ms"] + 2 * times["launch ms"]
    assert times["both ms"] == pytest.approx(expected, rel=1e-6)


def test_events_in_reverse_give_a_negative_time(times):
    assert times["reversed ms"] == -times["elapsed ms"]


def test_launches_are_timed_only_while_an_event_can_tell_a_time(times):
    assert times["profiles"] == {"no event": False, "untimed event": False, "event": True}
    assert times["profile kept after the events"]


def test_the_environment_can_refuse_timing(run_python, kernels):
    times = json.loads(run_python("event_times", kernels, FLASHATTN_SIM_TIMING="0"))
    assert times["code"] == "hipErrorNotSupported"  # no made-up time
    assert times["code without a launch"] == "hipSuccess"
    assert times["profiles"]["event"] is False


def test_the_environment_can_ask_for_timing(run_python, kernels):
    times = json.loads(run_python("event_times", kernels, FLASHATTN_SIM_TIMING="1"))
    assert times["profiles"] == {"no event": True, "untimed event": True, "event": True}


def test_host_functions_are_called_with_their_data(streams):
    assert streams["called"] == [["callback", 0, 42], ["function", 43]]


def test_there_is_one_context(streams):
    assert streams["context"] == ["hipSuccess", "hipErrorInvalidContext", 0]


def test_error_names(streams):
    names = ["hipSuccess", "hipErrorNoBinaryForGpu", "hipErrorLaunchFailure", "hipErrorNotSupported"]
    assert streams["names"] == [*names, "hipErrorUnknown"]
    assert streams["text"] == "no kernel image is available for execution on the device"
    assert streams["driver_name"] == [0, "hipErrorLaunchFailure"]
    assert streams["driver_unknown"] == 1
