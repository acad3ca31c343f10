"""Every rule by a result that breaks it alone."""

import math

import pytest
import torch

from flashattn_rocm.verify.judge import Compared, violation

WANT = torch.linspace(-1, 1, 101, dtype=torch.float64)


def compared(got, name="out", want=WANT, by_torch=None):
    return Compared(name, got, want, want.half() if by_torch is None else by_torch)


def test_the_nearest_half_is_right():
    assert violation(compared(WANT.half())) == ""


def test_another_shape():
    assert "shape (100,), not (101,)" in violation(compared(WANT[1:].half()))


def test_more_than_twice_torchs_error():
    by_torch = (WANT + 1e-3).half()
    assert violation(compared((WANT + 1.9e-3).half(), by_torch=by_torch)) == ""
    assert "out is off by" in violation(compared((WANT + 4e-3).half(), by_torch=by_torch))


@pytest.mark.parametrize("largest", [1e-4, 1.0, 1e3])
def test_float32_is_bounded_beside_its_largest_entry(largest):
    """1e-5 of it: an absolute bound would pass any error of small gradients, and refuse large ones."""
    want = WANT * largest
    exact = want.float()

    def off_by(relative):
        return compared((want + relative * largest).float(), want=want, by_torch=exact)

    assert violation(off_by(9e-6)) == ""
    assert "off by" in violation(off_by(2e-5))


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_infinities_where_there_are_none(odd):
    got = WANT.half()
    got[3] = odd
    assert "other places" in violation(compared(got))


def test_infinities_of_the_other_sign():
    want = WANT.clone()
    want[3] = -math.inf
    got = want.half()
    assert violation(compared(got, want=want)) == ""
    got[3] = math.inf
    assert "other places" in violation(compared(got, want=want))


def test_direction():
    """An error that torch's own error hides shows in the cosine."""
    by_torch = WANT.half() * 0
    assert "cosine" in violation(compared(-WANT.half() * 0.9, by_torch=by_torch))


def test_log_sum_exp():
    assert violation(compared((WANT + 9e-4).float(), "lse")) == ""
    assert "lse is off by" in violation(compared((WANT + 1.1e-3).float(), "lse"))
