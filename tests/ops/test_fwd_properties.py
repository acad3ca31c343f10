"""Random shapes, strides, head ratios and scales against float64."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flashattn_rocm import flash_attn_func
from tests.kit.cases import HEAD_DIMS, make_qkv
from tests.kit.poison import embed
from tests.kit.tolerance import assert_contract

SIMULATED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])

ORDERS = st.permutations([0, 1, 2]).map(lambda order: (*order, 3))
LAYOUTS = st.tuples(ORDERS, st.integers(0, 9), st.integers(0, 17))


@SIMULATED
@given(
    batch=st.integers(1, 3),
    seqlen_q=st.integers(1, 140),
    seqlen_k=st.integers(1, 140),
    heads_kv=st.integers(1, 3),
    ratio=st.integers(1, 4),
    head_dim=st.sampled_from([*HEAD_DIMS, 8, 48, 80, 100]),
    causal=st.booleans(),
    scale=st.none() | st.floats(-2.0, 2.0, width=32),
    layouts=st.tuples(LAYOUTS, LAYOUTS, LAYOUTS),
    seed=st.integers(0, 10_000),
)
def test_forward(batch, seqlen_q, seqlen_k, heads_kv, ratio, head_dim, causal, scale, layouts, seed):
    tensors = make_qkv(batch, seqlen_q, seqlen_k, heads_kv * ratio, heads_kv, head_dim, seed)
    poisoned = [embed(tensor, *layout) for tensor, layout in zip(tensors, layouts, strict=True)]
    views = [each.view for each in poisoned]
    out, _ = assert_contract(*views, softmax_scale=scale, causal=causal)
    for each in poisoned:
        each.assert_unchanged()
    assert out.equal(flash_attn_func(*views, softmax_scale=scale, causal=causal))
