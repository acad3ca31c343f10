"""The comparison of the regression guard, and the inner loop that it looks at."""

import dataclasses

import pytest

from flashattn_rocm.benchmarks.regression import (
    Record,
    RecordRow,
    measure,
    read_record,
    regressions,
    write_record,
)
from flashattn_rocm.benchmarks.static_mix import InnerLoop, inner_loop

LOOP = InnerLoop(instructions=100, dot2=80, ds_read=10, ds_write=0, memory_load=0)
ROW = RecordRow("1,64,64,2,2,32", "some_kernel", 100_000, 120, 24064, LOOP)


def changed(**changes):
    return [dataclasses.replace(ROW, **changes)]


@pytest.mark.parametrize("cycles", [50_000, 100_000, 102_000])
def test_two_per_cent_are_allowed(cycles):
    assert regressions([ROW], changed(cycles=cycles)) == []


def test_more_cycles_are_told_with_row_and_figures():
    (sentence,) = regressions([ROW], changed(cycles=102_100, kernel="other_kernel", vgprs=128))
    for part in (
        "1,64,64,2,2,32",
        "100,000 cycles by some_kernel (120 VGPRs",
        "102,100 by other_kernel (128",
    ):
        assert part in sentence
    assert "+2.1%" in sentence


def test_a_thinner_inner_loop_is_told_for_the_same_kernel():
    loop = dataclasses.replace(LOOP, instructions=103)
    (sentence,) = regressions([ROW], changed(inner_loop=loop))
    assert "dot2 is 77.7% of the inner loop of some_kernel, was 80.0%" in sentence
    assert regressions([ROW], changed(inner_loop=loop, kernel="other_kernel")) == []


def test_a_row_that_is_not_recorded_is_told():
    assert regressions([], [ROW]) == ["1,64,64,2,2,32: not in the record"]


def test_a_record_reads_back(tmp_path):
    record = Record("clang 1", (ROW,))
    write_record(record, tmp_path / "record.json")
    assert read_record(tmp_path / "record.json") == record


def test_measured_rows_repeat():
    first, second = (measure(["1,70,70,2,1,32,causal"]) for _ in range(2))
    assert first == second
    assert first[0].kernel.startswith("flashattn_fwd")
    assert first[0].cycles > 1000


# 0: outer loop begins, 8 and 16: two inner loops, 28: outer loop ends; 32: a branch forwards.
CODE = [
    (0, "s_nop", "0"),
    (4, "s_nop", "0"),
    (8, "v_dot2_f32_f16", "v0, v1, v2, v0"),
    (12, "s_cbranch_scc1", "65534"),
    (16, "ds_read_b128", "v[0:3], v4"),
    (20, "v_dot2_f32_f16", "v0, v1, v2, v0"),
    (24, "s_cbranch_scc1", "65533"),
    (28, "s_cbranch_vccnz", "65528"),
    (32, "s_branch", "1"),
    (36, "v_dot2_f32_f16", "v0, v1, v2, v0"),
    (40, "s_endpgm", ""),
]


def test_inner_loop_is_the_densest_one_without_a_loop_inside():
    assert inner_loop(CODE) == InnerLoop(instructions=2, dot2=1, ds_read=0, ds_write=0, memory_load=0)
    assert inner_loop(CODE).dot2_share == 0.5


def test_an_outer_loop_counts_where_it_is_the_only_one():
    code = [line for line in CODE if line[0] not in (12, 24)]
    assert inner_loop(code) == InnerLoop(instructions=6, dot2=2, ds_read=1, ds_write=0, memory_load=0)


def test_code_without_a_loop_is_refused():
    with pytest.raises(ValueError, match="no loop"):
        inner_loop(CODE[-3:])
