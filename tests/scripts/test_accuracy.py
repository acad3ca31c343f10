"""The table of scripts/accuracy.py."""

import accuracy as script
import pytest

from flashattn_rocm.accuracy import Accuracy


@pytest.mark.parametrize(
    ("ours", "math", "shown"), [(0.5, 0.25, "2.00"), (0.0, 0.0, "both exact"), (0.5, 0.0, "inf")]
)
def test_the_ratio_of_errors_is_never_nan(ours, math, shown):
    accuracy = Accuracy(True, max_error=ours, math_error=math, rounding=0, cosine=1, lse_error=0)
    assert script._ratio(accuracy) == shown
