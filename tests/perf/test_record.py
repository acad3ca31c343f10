"""No chosen launch got slower than recorded."""

from pathlib import Path

import pytest

from flashattn_rocm.benchmarks.regression import SHAPES, compiler, measure, read_record, regressions

RECORD = read_record(Path(__file__).with_name("record.json"))


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_got_worse_than_recorded(shape):
    if compiler() != RECORD.compiler:
        pytest.skip(f"the kernels are built by {compiler()}, recorded are those of {RECORD.compiler}")
    worse = regressions(RECORD.rows, measure([shape]))
    assert not worse, "\n".join(
        [*worse, "Where this is meant, `make record-performance` writes the new figures: commit them."]
    )


def test_the_record_has_the_shapes_that_are_measured():
    assert [row.shape for row in RECORD.rows] == list(SHAPES)
