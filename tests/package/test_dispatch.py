"""Why a kernel is chosen, and how to choose another."""

import threading

import pytest
import torch

import flashattn_rocm._C as _C
from flashattn_rocm import explain_dispatch, flash_attn_func, use_tile
from flashattn_rocm.__main__ import main
from flashattn_rocm.profiling.profile import longest, timed_launches

_CARD = {"arch": "gfx906", "compute_units": 60}


def _taken(q):
    with timed_launches() as launches:
        flash_attn_func(q, q, q)
    return longest(launches).kernel


@pytest.fixture
def q():
    return torch.randn(1, 64, 2, 64, generator=torch.Generator().manual_seed(0)).half()


def test_the_first_of_the_ranking_is_what_runs(q):
    ranking = explain_dispatch(head_dim=64, seqlen_q=64, heads=2)
    assert _taken(q) == ranking[0].kernel
    clocks = [choice.estimated_clocks for choice in ranking]
    assert len(ranking) > 1
    assert clocks == sorted(clocks)


def test_the_ranking_says_what_it_is_made_of():
    choice = explain_dispatch(head_dim=128, seqlen_q=1024, heads=6, **_CARD)[0]
    row = next(row for row in _C.fwd_kernels() if row["name"] == choice.kernel)
    assert choice.workgroups == 6 * 1024 // row["block_m"]
    assert choice.rounds == choice.workgroups / (60 * row["workgroups_per_cu"])
    assert choice.mean_steps == 1024 / row["block_n"]


def test_the_kind_of_call_counts():
    problem = {"head_dim": 128, "seqlen_q": 1024, "heads": 6, **_CARD}
    plain, bf16, changed, unaligned = (
        explain_dispatch(**problem, **more)[0].kernel
        for more in ({}, {"dtype": torch.bfloat16}, {"changes_scores": True}, {"aligned": False})
    )
    assert "_f16_" in plain
    assert bf16 == plain.replace("_f16_", "_bf16_")
    assert "modified" in changed
    assert "elements" in unaligned


def test_rows_that_claim_to_take_no_time_are_weighed_too():
    """Query blocks that see no key, by clocks that a configuration may hold."""
    clocks = {"fixed": 0, "step": 0, "step_full": 0}
    rows = [{**row, "clocks": clocks} for row in _C.fwd_kernels() if row["head_dim"] == 64]
    ranking = _C.rank_fwd(1, 1000, 64, 8, 8, 64, True, rows=rows)
    assert all(row["estimated_clocks"] > 0 for row in ranking)


def test_a_large_problem_takes_a_larger_tile_than_a_small_one():
    small, large = (
        explain_dispatch(head_dim=128, seqlen_q=s, heads=h, **_CARD)[0] for s, h in ((128, 2), (8192, 64))
    )
    assert small.block_m < large.block_m


def test_use_tile_is_an_override_in_all_threads_and_nests(q):
    first, *others = [choice.kernel for choice in explain_dispatch(head_dim=64, seqlen_q=64, heads=2)]
    seen = []
    with use_tile(others[0]):
        with use_tile(others[-1]):
            thread = threading.Thread(target=lambda: seen.append(_taken(q)))
            thread.start()
            thread.join()
        seen.append(_taken(q))
    seen.append(_taken(q))
    assert seen == [others[-1], others[0], first]


def test_use_tile_ends_with_the_block_that_fails(q):
    other = explain_dispatch(head_dim=64, seqlen_q=64, heads=2)[1].kernel
    with pytest.raises(KeyError), use_tile(other):
        raise KeyError
    assert _taken(q) != other


def test_use_tile_names_the_kernels_that_there_are():
    with pytest.raises(ValueError, match="tile='m128' is no kernel of this build; there are flashattn_fwd"):
        use_tile("m128").__enter__()


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"head_dim": 0}, "head_dim=0 must be at least 1"),
        ({"heads_kv": 3}, "heads_kv=3 must divide heads=4"),
        ({"dtype": torch.float64}, "dtype=torch.float64 must be"),
        ({"head_dim": 4096}, "no forward kernel for head_dim 4096"),
    ],
)
def test_impossible_problems_are_refused(sizes, message):
    with pytest.raises(ValueError, match=message):
        explain_dispatch(**{"head_dim": 64, "seqlen_q": 8, "heads": 4, **_CARD, **sizes})


def test_the_command_prints_the_ranking_and_the_reason(capsys):
    arguments = ["--head-dim", "128", "--seqlen-q", "512", "--heads", "8", "--causal"]
    assert main(["dispatch", *arguments]) == 0
    text = capsys.readouterr().out
    ranking = explain_dispatch(head_dim=128, seqlen_q=512, heads=8, causal=True)
    assert all(choice.kernel in text for choice in ranking)
    assert f"{ranking[0].kernel} is taken: {ranking[0].workgroups} workgroups" in text
    assert f"{ranking[0].estimated_clocks:,.0f}" in text


def test_the_command_follows_the_variable(capsys, monkeypatch):
    other = explain_dispatch(head_dim=64, seqlen_q=64, heads=2)[1].kernel
    monkeypatch.setenv("FLASHATTN_ROCM_FWD_TILE", other)
    assert main(["dispatch", "--head-dim", "64", "--seqlen-q", "64", "--heads", "2"]) == 0
    assert f"{other} is taken: FLASHATTN_ROCM_FWD_TILE asks for it." in capsys.readouterr().out


def test_the_command_fails_with_one_sentence(capsys):
    assert main(["dispatch", "--head-dim", "4096"]) == 1
    assert capsys.readouterr().err.startswith("flashattn-rocm: error: no forward kernel for head_dim 4096")
