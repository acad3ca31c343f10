"""Whole launches: as the op makes them, and none of them twice."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

import flashattn_rocm._C as _C
from buildlib.paths import BUILD
from buildlib.tile_config import FwdKernel, load_config
from flashattn_rocm import flash_attn_func, use_tile
from flashattn_rocm.profiling.profile import timed_launches
from flashattn_rocm.profiling.work import ForwardShape
from tunelib import whole_launches
from tunelib.bench import random_inputs
from tunelib.compiler import TileCompiler
from tunelib.fwd_bench import ForwardBench
from tunelib.fwd_choose import OutOfTimeError
from tunelib.hip_device import DeviceError, HipDevice
from tunelib.journal import Journal
from tunelib.records import write_launches
from tunelib.whole_launches import WholeLaunches

_SPLIT = next(row for row in load_config(("gfx906",)).fwd if row.split and row.head_dim == 64)
_SHAPE = ForwardShape(64, 200, 200, 1, 2, 2, True)


def _kernel(split):
    return FwdKernel(tile=_SPLIT, element="f16", split=split)


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "journal.jsonl", {"device": "a card"}, fresh=True)


@pytest.mark.parametrize("split", [False, True])
def test_a_launch_takes_the_clocks_of_the_op(split, journal):
    device = HipDevice(simulated=True)
    compiler = TileCompiler(BUILD / "tuning" / "kernels")
    launches = WholeLaunches(device, ForwardBench(device, None), compiler, journal)
    clocks = launches.clocks(_kernel(split), _SHAPE)
    assert journal.launches == {f"{_kernel(split).name} 1,200,200,2,2,64,causal": clocks}
    # Copied to where rows begin with a line of memory, as the tuner's do: elsewhere they are 0.8 % slower.
    q, k, v = (torch.from_numpy(x).clone() for x in random_inputs(_SHAPE, _SPLIT, "q k v").values())
    with use_tile(_kernel(split).name), timed_launches() as profiles:
        flash_attn_func(q, k, v, causal=True)
    (profile,) = profiles
    assert profile.kernel == _kernel(split).name
    assert clocks == pytest.approx(profile.clocks, rel=0.005)


class _Bench:
    def __init__(self, results) -> None:
        self.results = iter(results)

    def whole(self, kernel, function, shape):
        result = next(self.results)
        if isinstance(result, BaseException):
            raise result
        return SimpleNamespace(clocks=result)


def _launches(journal, results, seconds=None):
    device = SimpleNamespace(
        arch="gfx906", module=lambda file: nullcontext(file), function=lambda module, name: name
    )
    compiler = SimpleNamespace(compile_kernel=lambda kernel, arch: SimpleNamespace(file="kernels.co"))
    return WholeLaunches(device, _Bench(results), compiler, journal, seconds)


def test_what_is_known_is_not_launched_again(journal):
    assert _launches(journal, [5.0]).clocks(_kernel(True), _SHAPE) == 5.0
    again = _launches(journal, [6.0])
    assert again.clocks(_kernel(True), _SHAPE) == 5.0
    assert again.clocks(_kernel(False), _SHAPE) == 6.0


def test_a_launch_that_failed_is_infinitely_slow(journal):
    launches = _launches(journal, [DeviceError("hipErrorLaunchFailure")])
    assert launches.clocks(_kernel(True), _SHAPE) == math.inf
    assert launches.clocks(_kernel(True), _SHAPE) == math.inf


def test_a_launch_that_the_user_stopped_is_launched_again(journal):
    with pytest.raises(KeyboardInterrupt):
        _launches(journal, [KeyboardInterrupt()]).clocks(_kernel(True), _SHAPE)
    assert journal.launches == {f"{_kernel(True).name} 1,200,200,2,2,64,causal": None}
    journal = Journal(journal._file, {"device": "a card"}, fresh=False)
    assert _launches(journal, [7.0]).clocks(_kernel(True), _SHAPE) == 7.0


def test_none_is_begun_after_its_time(journal, monkeypatch):
    now = iter([100.0, 110.0, 121.0])
    monkeypatch.setattr(whole_launches.time, "monotonic", lambda: next(now))
    launches = _launches(journal, [1.0, 2.0], seconds=20)
    shapes = [ForwardShape(64, seqlen, seqlen, 1, 2, 2, False) for seqlen in (100, 200, 300)]
    assert [launches.clocks(_kernel(True), shape) for shape in shapes[:2]] == [1.0, 2.0]
    with pytest.raises(OutOfTimeError):
        launches.clocks(_kernel(True), shapes[2])
    assert launches.out_of_time
    assert launches.clocks(_kernel(True), shapes[0]) == 1.0


def test_the_record_has_sets_and_launches(tmp_path):
    means = {"slow_tile first": 2000.4, "quick_tile first": 1000.0}
    file = write_launches(means, {"kernel 1,2,3": 1500.0, "other 1,2,3": None}, tmp_path)
    lines = file.read_text().splitlines()
    assert lines.index("| quick_tile first | 1,000 |") < lines.index("| slow_tile first | 2,000 |")
    assert "| kernel | 1,2,3 | 1,500 |" in lines
    assert "| other | 1,2,3 | failed |" in lines


def test_a_grid_that_is_not_cut_is_refused():
    addresses = dict.fromkeys(("q", "k", "v", "out", "lse", "partial_o", "partial_lse", "arrivals"), 0)
    with pytest.raises(ValueError, match="no query block of this grid would be cut"):
        _C.fwd_launch(_kernel(True).keys, addresses, 64, 4096, 4096, 16, 16, 64, False, 1.0)
