"""No chosen launch got slower than recorded."""

from pathlib import Path

import pytest

from flashattn_rocm.benchmarks.regression import (
    BACKWARD_LAUNCHES,
    BACKWARD_SHAPES,
    DECODE_SHAPES,
    SHAPES,
    compiler,
    measure,
    measure_backward,
    measure_decode,
    name_of_decode,
    read_record,
    regressions,
)

RECORD = read_record(Path(__file__).with_name("record.json"))


@pytest.mark.parametrize(
    ("measured", "shape"),
    [
        *((measure, shape) for shape in SHAPES),
        *((measure_backward, shape) for shape in BACKWARD_SHAPES),
        *((measure_decode, shape) for shape in DECODE_SHAPES),
    ],
)
def test_nothing_got_worse_than_recorded(measured, shape):
    if compiler() != RECORD.compiler:
        pytest.skip(f"the kernels are built by {compiler()}, recorded are those of {RECORD.compiler}")
    worse = regressions(RECORD.rows, measured([shape]))
    assert not worse, "\n".join(
        [*worse, "Where this is meant, `make record-performance` writes the new figures: commit them."]
    )


def test_the_record_has_the_shapes_that_are_measured():
    launches = [f"{shape} {launch}" for shape in BACKWARD_SHAPES for launch in BACKWARD_LAUNCHES]
    steps = map(name_of_decode, DECODE_SHAPES)
    assert [row.shape for row in RECORD.rows] == [*SHAPES, *launches, *steps]
