"""A long-lived process: nothing of 10,000 launches stays behind."""

import json
from pathlib import Path

import pytest

LAUNCHES = 10_000


@pytest.fixture(scope="module")
def quarters(run_python, kernels) -> list[dict[str, int]]:
    repository = str(Path(__file__).parents[3])
    environment = {"FLASHATTN_SIM_LOG": "0", "PYTHONPATH": repository}
    return json.loads(run_python("many_launches", kernels, str(LAUNCHES), **environment))


@pytest.mark.parametrize("what", ["device bytes", "threads", "files"])
def test_nothing_is_left_of_launches_modules_streams_events_and_faults(quarters, what):
    assert quarters[0][what] == quarters[3][what]


def test_mappings_do_not_pile_up(quarters):
    assert quarters[3]["mappings"] - quarters[0]["mappings"] < 32  # the host's allocator moves a few


def test_the_heap_does_not_grow(quarters):
    # A handle, a kernel or a fault's text that is kept is at least 16 bytes a launch or 160 a module.
    assert quarters[3]["heap bytes"] - quarters[0]["heap bytes"] < 8 * LAUNCHES * 3 // 4


def test_resident_memory_is_stable(quarters):
    assert quarters[3]["resident bytes"] - quarters[0]["resident bytes"] < 4 << 20
