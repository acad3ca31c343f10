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
        ("elapsed", "hipErrorNotSupported"),  # no made-up time
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
