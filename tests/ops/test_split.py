"""The forward that cuts query blocks along the keys, where the grid does not fill the card evenly."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import flashattn_rocm._C as _C
from flashattn_rocm import explain_dispatch, use_tile
from flashattn_rocm.profiling.profile import timed_launches
from tests.kit.tolerance import assert_attention

SPLIT = [row["name"] for row in _C.fwd_kernels() if row["split"]]


def inputs(kernel, batch, seqlen_q, seqlen_k, heads, heads_kv, seed=0):
    generator = torch.Generator().manual_seed(seed)
    head_dim = next(row["head_dim"] for row in _C.fwd_kernels() if row["name"] == kernel)
    dtype = torch.bfloat16 if "_bf16_" in kernel else torch.float16

    def tensor(seqlen, n):
        return torch.randn(batch, seqlen, n, head_dim, generator=generator).to(dtype)

    return tensor(seqlen_q, heads), tensor(seqlen_k, heads_kv), tensor(seqlen_k, heads_kv)


def run(kernel, q, k, v, **options):
    """The op's result, and the kernels that it launched."""
    with use_tile(kernel), timed_launches() as launches:
        out, lse = torch.ops.flashattn_rocm.fwd(q, k, v, **options)
    return out, lse, [launch.kernel for launch in launches]


def check(kernel, q, k, v, **options):
    out, lse, launched = run(kernel, q, k, v, **options)
    assert launched == [kernel]
    assert_attention(q, k, v, out, lse, **options)


def test_both_elements_are_built_for_two_head_dims():
    assert len(SPLIT) == 4
    assert all(name.endswith("_split") for name in SPLIT)


@pytest.mark.parametrize("kernel", SPLIT)
@pytest.mark.parametrize(
    ("sizes", "options"),
    [
        ((1, 300, 513, 4, 2), {"causal": True}),
        ((2, 70, 700, 3, 1), {}),
        ((1, 1, 1000, 1, 1), {}),
        ((1, 200, 500, 2, 2), {"window_left": 100, "window_right": 20}),
        ((1, 200, 300, 2, 1), {"causal": True, "top_left": True}),
        ((1, 130, 400, 4, 4), {"softmax_scale": -0.3}),
    ],
    ids=str,
)
def test_agrees_with_float64(kernel, sizes, options):
    check(kernel, *inputs(kernel, *sizes), **options)


@pytest.mark.parametrize("kernel", SPLIT)
def test_rows_without_keys_are_zero(kernel):
    q, k, v = inputs(kernel, 1, 500, 200, 2, 2)
    check(kernel, q, k, v, causal=True)
    out, lse, _ = run(kernel, q, k, v, causal=True)
    assert (out[:, :300] == 0).all()
    assert lse[:, :, :300].isneginf().all()


@pytest.mark.parametrize("kernel", SPLIT)
def test_a_sink_counts_once(kernel):
    q, k, v = inputs(kernel, 1, 100, 600, 4, 2)
    check(kernel, q, k, v, sinks=torch.tensor([2.0, -1.0, 8.0, 30.0]))


@pytest.mark.parametrize("kernel", SPLIT)
def test_strided_heads_and_a_shorter_head_dim(kernel):
    q, k, v = inputs(kernel, 1, 90, 500, 2, 2)
    check(kernel, q[..., :-8], k[..., :-8], v[..., :-8])


@pytest.mark.parametrize("kernel", SPLIT)
def test_a_nan_stays_in_its_row(kernel):
    q, k, v = inputs(kernel, 1, 64, 700, 1, 1)
    q[0, 5, 0, 0] = float("nan")
    out, _, launched = run(kernel, q, k, v)
    assert launched == [kernel]
    assert out[0, 5].isnan().all()
    assert not out[0, :5].isnan().any()
    assert not out[0, 6:].isnan().any()


@pytest.mark.parametrize("kernel", SPLIT)
def test_an_infinite_value_is_no_nan(kernel):
    q, k, v = inputs(kernel, 1, 64, 700, 1, 1)
    v[0, 0, 0, 0] = float("inf")
    out, _, launched = run(kernel, q, k, v)
    assert launched == [kernel]
    assert out[0, :, 0, 0].isposinf().all()
    assert out[0, :, 0, 1:].isfinite().all()


@pytest.mark.parametrize("kernel", SPLIT)
def test_the_same_bits_in_any_order_of_waves(kernel, monkeypatch):
    q, k, v = inputs(kernel, 1, 200, 700, 2, 1)
    results = []
    for seed in range(5):
        monkeypatch.setenv("FLASHATTN_SIM_SEED", str(seed))
        results.append(run(kernel, q, k, v, causal=True)[:2])
    assert all(torch.equal(x, y) for result in results for x, y in zip(result, results[0], strict=True))


@settings(max_examples=25, deadline=None)
@given(
    kernel=st.sampled_from(SPLIT),
    batch=st.integers(1, 3),
    seqlen_q=st.integers(1, 200),
    seqlen_k=st.integers(1, 600),
    heads_kv=st.integers(1, 3),
    ratio=st.integers(1, 3),
    causal=st.booleans(),
)
def test_any_shape(kernel, batch, seqlen_q, seqlen_k, heads_kv, ratio, causal):
    q, k, v = inputs(kernel, batch, seqlen_q, seqlen_k, heads_kv * ratio, heads_kv)
    out, lse, _ = run(kernel, q, k, v, causal=causal)
    assert_attention(q, k, v, out, lse, causal=causal)


def test_lengths_that_only_the_card_knows_are_not_cut():
    kernel = SPLIT[0]
    q, k, v = (x[0] for x in inputs(kernel, 1, 300, 300, 2, 2))
    ends = torch.tensor([0, 100, 300], dtype=torch.int32)
    lengths = {"cu_seqlens_q": ends, "cu_seqlens_k": ends, "max_seqlen_q": 200, "max_seqlen_k": 200}
    _, _, launched = run(kernel, q, k, v, **lengths)
    assert len(launched) == 1
    assert "split" not in launched[0]


def test_the_uneven_last_round_is_cut_and_large_grids_are_not():
    card = {"arch": "gfx906", "compute_units": 60}
    uneven = explain_dispatch(head_dim=64, seqlen_q=1024, heads=16, **card)[0]
    assert uneven.kernel.endswith("_split")
    # 240 of 256 query blocks fill 60 compute units twice; the other 16 become 6 to 8 each.
    assert uneven.workgroups in (240 + 96, 240 + 112, 240 + 128)
    packed = explain_dispatch(head_dim=64, seqlen_q=1024, heads=16, packed=True, **card)
    assert not any(choice.kernel.endswith("_split") for choice in packed)
    assert not explain_dispatch(head_dim=64, seqlen_q=8192, heads=16, **card)[0].kernel.endswith("_split")
    assert not explain_dispatch(head_dim=64, seqlen_q=64, heads=120, **card)[0].kernel.endswith("_split")
