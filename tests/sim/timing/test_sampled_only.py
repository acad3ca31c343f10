"""A launch of which only a sample runs takes as long as the same launch that runs as a whole."""

import pytest
import torch

from flashattn_rocm import flash_attn_func, use_tile
from flashattn_rocm.profiling.profile import Profile, timed_launches
from flashattn_rocm.sim.hip import simulator


@pytest.fixture(autouse=True)
def _tile_of_64_rows():
    """Of which launches have so many workgroups that some are left out."""
    with use_tile("flashattn_fwd_f16_d32_m64n64w4p64"):
        yield


def profile(seqlen: int, heads: int, *, causal: bool, sampled_only: bool) -> Profile:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, seqlen, heads, 32, generator=generator).half() for _ in range(3))
    with timed_launches() as launches:
        if sampled_only:
            with simulator().sampled_only():
                flash_attn_func(q, k, v, causal=causal)
        else:
            flash_attn_func(q, k, v, causal=causal)
    return launches[0]


# A causal launch has groups of 32 different lengths here; 512 groups, the card holds 120.
@pytest.mark.parametrize("causal", [False, True])
def test_time_and_instructions_agree_with_the_whole_launch(causal: bool) -> None:
    whole = profile(2048, 16, causal=causal, sampled_only=False)
    sampled = profile(2048, 16, causal=causal, sampled_only=True)
    assert whole.groups_timed < whole.groups  # else nothing is left to estimate
    assert sampled.wave_instructions == pytest.approx(whole.wave_instructions, rel=0.01)
    assert sampled.milliseconds == pytest.approx(whole.milliseconds, rel=0.03)
    assert 0 < sampled.sampling_error < 0.15


def test_most_groups_do_not_run() -> None:
    hip = simulator()
    before = hip.wave_instructions()
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 2048, 16, 32, generator=generator).half() for _ in range(3))
    with timed_launches(), hip.sampled_only():
        sampled = flash_attn_func(q, k, v)
    assert hip.wave_instructions() > before
    whole = flash_attn_func(q, k, v)
    assert (sampled == whole).all(-1).float().mean() < 0.7


def test_a_small_launch_runs_as_a_whole() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 200, 2, 32, generator=generator).half() for _ in range(3))
    whole = flash_attn_func(q, k, v)
    with timed_launches() as launches, simulator().sampled_only():
        sampled = flash_attn_func(q, k, v)
    assert torch.equal(sampled, whole)
    for launch in launches:
        assert launch.groups_timed == launch.groups
        assert launch.sampling_error == 0


def test_it_ends_with_the_block() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(1, 1024, 32, 32, generator=generator).half() for _ in range(3))
    with simulator().sampled_only():
        pass
    with timed_launches():
        timed = flash_attn_func(q, k, v)
    assert torch.equal(timed, flash_attn_func(q, k, v))


@pytest.mark.long
def test_what_a_workgroup_reads_once_is_not_scaled_with_its_loop() -> None:
    """A sample that is cut off has seen all of Q, and a fifth of K and V.

    241 workgroups of 128 queries share one key head, whose K and V are twice as large as L2: each round of
    60, which walk in step, reads them once.
    """
    generator = torch.Generator().manual_seed(0)
    heads, keys = 241, 16384
    q = torch.randn(1, 128, heads, 128, generator=generator).half()
    k, v = (torch.randn(1, keys, 1, 128, generator=generator).half() for _ in range(2))
    tile = "flashattn_fwd_f16_d128_m128n64w4p32_in_turns"
    with use_tile(tile), timed_launches() as launches, simulator().sampled_only():
        flash_attn_func(q, k, v)
    (launch,) = launches
    assert launch.wave_instructions > 5 * launch.wave_instructions_timed
    read = q.nbytes + heads / 60 * (k.nbytes + v.nbytes)
    assert launch.bytes_of_launch.hbm_read == pytest.approx(read, rel=0.05)
