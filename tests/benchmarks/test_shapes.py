"""Which rows the options choose."""

import pytest

from flashattn_rocm.benchmarks.shapes import bench_cases, parse_shape, quick_cases
from flashattn_rocm.profiling.work import ForwardShape


def seqlens(bench):
    return [case.shape.seqlen_q for case in bench_cases([bench])]


def test_the_tables_are_those_that_users_compare():
    assert seqlens("fwd-d64") == [256, 512, 1024, 2048, 4096, 8192, 16384]
    assert seqlens("fwd-d128-gqa") == seqlens("fwd-d128-mha") == [512 << n for n in range(7)]
    assert bench_cases(["fwd-d64"])[0].shape == ForwardShape(64, 256, 256, 1, 16, 16, False)
    assert bench_cases(["fwd-d128-gqa"])[-1].shape == ForwardShape(128, 32768, 32768, 1, 32, 8, True)


def test_masks_and_lengths_replace_those_of_the_table():
    cases = bench_cases(["fwd-d128-mha"], [300], None, (True, False))
    assert [(case.shape.seqlen_k, case.shape.causal) for case in cases] == [(300, True), (300, False)]


def test_head_dims_choose_tables():
    assert {case.bench for case in bench_cases(head_dims=[64])} == {"fwd-d64"}


def test_quick_rows_are_rows_of_the_tables():
    assert 3 <= len(quick_cases()) <= 6
    assert set(quick_cases()) < set(bench_cases())


def test_a_shape_by_hand():
    assert parse_shape("2,3,70,4,2,32,causal").shape == ForwardShape(32, 3, 70, 2, 4, 2, True)
    assert not parse_shape("2,3,70,4,2,32").shape.causal


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "1,2,3,4,5,x", "0,1,1,1,1,32", "1,1,1,1,1,32,full", "1,1,1,3,2,32"]
)
def test_a_wrong_shape_names_itself_and_what_is_allowed(text):
    with pytest.raises(ValueError, match=r"allowed is B,Sq,Sk,Hq,Hkv,D|must be a multiple of") as caught:
        parse_shape(text)
    assert repr(text) in str(caught.value)
