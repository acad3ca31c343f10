"""What the timing model must hold whatever its numbers are."""

import pytest

from tests.sim.timing.kernels import clocks_of_more_iterations, profile


def test_a_quarter_rate_instruction_costs_four_full_rate_ones() -> None:
    ratio = clocks_of_more_iterations("exp_f32") / clocks_of_more_iterations("fma_f32")
    # The loop around them (24 of 280 clocks with one wave a SIMD) is the same for both.
    assert 3.6 < ratio <= 4.0


def test_a_half_rate_instruction_costs_two_full_rate_ones() -> None:
    ratio = clocks_of_more_iterations("fma_f64") / clocks_of_more_iterations("fma_f32")
    assert 1.8 < ratio <= 2.0


def test_padded_columns_are_free_of_bank_conflicts() -> None:
    assert profile("lds_column_33")["lds_conflict_clocks"] == 0
    assert profile("lds_contiguous")["lds_conflict_clocks"] == 0


def test_a_power_of_two_pitch_conflicts_eight_ways() -> None:
    # 8 lanes of a service group want the same four banks: 56 clocks more than the 8 of a read.
    more = profile("lds_column_32", 60, 8), profile("lds_column_32", 60, 4)
    conflicts = more[0]["lds_conflict_clocks"] - more[1]["lds_conflict_clocks"]
    reads = 60 * 4 * 4 * 4  # groups, waves, reads of an iteration, iterations
    assert conflicts == 56 * reads
    assert clocks_of_more_iterations("lds_column_32") > 2 * clocks_of_more_iterations("lds_column_33")


@pytest.mark.parametrize(
    "kernel", ["fma_f32", "lds_stream_b128", "exchange_lds", "read_dwordx4", "write_hds_dword"]
)
def test_the_causes_add_up_to_the_clocks_of_all_simds(kernel: str) -> None:
    timed = profile(kernel, 240, 4)
    simds = 4 * timed["card"]["compute_units"]
    assert sum(timed["causes"].values()) == pytest.approx(simds * timed["clocks_timed"], rel=0.01)


def test_the_same_launch_takes_the_same_time() -> None:
    first, second = profile("copy_dwordx4", 240, 2), profile("copy_dwordx4", 240, 2)
    assert first == second


def test_an_exhaustive_launch_has_no_sampling_error() -> None:
    timed = profile("fma_f32", 240, 1)
    assert timed["groups_timed"] == timed["groups"] == 240
    assert timed["sampling_error"] == 0


def test_a_sampled_launch_states_its_error_and_agrees_with_an_exhaustive_one() -> None:
    fill = 60 * profile("exchange_bpermute", 1, 1)["occupancy"]["groups_per_cu"]
    whole, sampled = profile("exchange_bpermute", 4 * fill, 48), profile("exchange_bpermute", 8 * fill, 48)
    assert sampled["groups_timed"] < sampled["groups"] == 8 * fill
    assert 0 < sampled["sampling_error"] < 0.2
    assert sampled["clocks"] == pytest.approx(2 * whole["clocks"], rel=0.1)


def test_a_launch_takes_at_least_as_long_as_its_stores() -> None:
    # Pure writes run at HBM's rate for writes, once they exceed what L2 holds.
    few, many = profile("write_hsd_dwordx4", 480, 8), profile("write_hsd_dwordx4", 480, 16)
    written = 480 * 8 * 256 * 16
    seconds = (many["milliseconds"] - few["milliseconds"]) / 1e3
    assert written / seconds / 1e9 < many["card"]["hbm_gbps"]
