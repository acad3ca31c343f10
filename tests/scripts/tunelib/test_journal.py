"""The journal survives what a tuning run does not."""

import json

import pytest

from tests.scripts.tunelib.kit import bwd_tile, tile, timed, timed_bwd
from tunelib.journal import Journal
from tunelib.trial import Trial, Verdict

_RUN = {"device": "a card", "kernels": "hash"}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "out" / "journal.jsonl"


def test_trials_come_back_as_they_were(file):
    trials = [
        timed(tile(), step=100),
        Trial(tile(block_m=128), Verdict.SPILLS, "3 registers", spills=3),
        timed_bwd(bwd_tile(), 12.5, causes={"valu": 80.0}),
    ]
    journal = Journal(file, _RUN, fresh=False)
    for trial in trials:
        journal.end(trial)
    again = Journal(file, _RUN, fresh=False)
    assert list(again.trials.values()) == trials
    assert not again.stale


def test_a_trial_that_did_not_end_is_not_tried_again(file):
    journal = Journal(file, _RUN, fresh=False)
    journal.begin(Trial(tile(), Verdict.CRASHED, vgprs=99))
    assert Journal(file, _RUN, fresh=False).trials[tile().name].verdict == Verdict.CRASHED
    journal.end(timed(tile(), step=100))
    assert Journal(file, _RUN, fresh=False).trials[tile().name].verdict == Verdict.TIMED


def test_a_trial_that_the_user_stopped_is_tried_again(file):
    journal = Journal(file, _RUN, fresh=False)
    journal.begin(Trial(tile(), Verdict.CRASHED))
    journal.stop(tile().name)
    assert Journal(file, _RUN, fresh=False).trials == {}


def test_a_tile_that_is_no_longer_possible_is_forgotten(file):
    Journal(file, _RUN, fresh=False).end(timed(tile(), step=100))
    file.write_text(file.read_text().replace('"waves": 4', '"waves": 5'))
    assert Journal(file, _RUN, fresh=False).trials == {}


def test_half_a_line_at_the_end_costs_one_trial(file):
    journal = Journal(file, _RUN, fresh=False)
    journal.end(timed(tile(), step=100))
    journal.end(timed(tile(block_m=128), step=200))
    file.write_text(file.read_text()[:-40])
    again = Journal(file, _RUN, fresh=False)
    assert list(again.trials) == [tile().name]
    again.end(timed(tile(block_m=32), step=50))
    assert list(Journal(file, _RUN, fresh=False).trials) == [tile().name, tile(block_m=32).name]
    assert all(json.loads(line) for line in file.read_text().splitlines())


def test_other_sources_or_another_device_begin_anew(file):
    Journal(file, _RUN, fresh=False).end(timed(tile(), step=100))
    other = Journal(file, _RUN | {"kernels": "another"}, fresh=False)
    assert other.stale
    assert other.trials == {}


def test_fresh_forgets(file):
    Journal(file, _RUN, fresh=False).end(timed(tile(), step=100))
    assert Journal(file, _RUN, fresh=True).trials == {}
    assert Journal(file, _RUN, fresh=False).trials == {}


def test_whole_launches_come_back(file):
    journal = Journal(file, _RUN, fresh=False)
    journal.end(timed(tile(), step=100))
    for name, clocks in (("done", 12.5), ("stopped", 1.0), ("crashed", None)):
        journal.begin_launch(name)
        if clocks is not None:
            journal.end_launch(name, clocks)
    journal.stop("stopped")
    again = Journal(file, _RUN, fresh=False)
    assert again.launches == {"done": 12.5, "crashed": None}
    assert list(again.trials) == [tile().name]
    assert Journal(file, _RUN | {"kernels": "another"}, fresh=False).launches == {}
