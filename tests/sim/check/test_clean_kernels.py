"""What is right is never refused, and what is wrong always: in whatever order waves run."""

import pytest
import torch

from flashattn_rocm import flash_attn_func
from tests.sim.check.bench import Shape, fault_of
from tests.sim.fuzz.campaign import run_unit

SEEDS = range(1, 21)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("head_dim", [32, 64, 128])
def test_forward_under_many_seeds(head_dim: int, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths that end within a tile, and two query heads for one of K and V."""
    generator = torch.Generator().manual_seed(head_dim)
    q = torch.randn(1, 150, 2, head_dim, generator=generator).half()
    k, v = torch.randn(2, 1, 190, 1, head_dim, generator=generator).half()
    results = []
    for seed in SEEDS:
        monkeypatch.setenv("FLASHATTN_SIM_SEED", str(seed))
        results.append(flash_attn_func(q, k, v, causal=causal))
    assert all(torch.equal(result, results[0]) for result in results)


def test_what_compilers_make() -> None:
    """Random functions with branches, LDS exchange and shuffles, at each optimisation level of clang."""
    findings = run_unit(range(9000, 9012), ("0", "1", "2", "3"))
    assert not findings, "\n\n".join(map(str, findings))


def test_race_under_many_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four waves: wave 2 writes what the others read. Whoever comes first, one of them is refused."""
    body = """v_mov_b32_e32 v2, 0
        v_readfirstlane_b32 s12, v0
        s_cmp_lg_u32 s12, 128
        s_cbranch_scc1 reads
        ds_write_b32 v2, v2
        s_branch done
        reads:
        ds_read_b32 v3, v2
        done:"""
    waves = set()
    for seed in SEEDS:
        monkeypatch.setenv("FLASHATTN_SIM_SEED", str(seed))
        report = fault_of("read_write", body, Shape(waves=4))
        assert "LDS race" in report.reason
        waves.add(report.wave)
    assert len(waves) > 1  # the seeds do change the order
