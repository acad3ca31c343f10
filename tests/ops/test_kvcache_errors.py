"""What flash_attn_with_kvcache refuses, and how it says so."""

import pytest
import torch

from flashattn_rocm import flash_attn_with_kvcache
from tests.kit.kvcache import Cache, randn


def int32(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32)


def dense(**changes):
    cache = Cache.dense([20, 7])
    call = {"q": randn(2, 1, 4, 64), "k_cache": cache.k, "v_cache": cache.v, **cache.indices}
    return call | changes


def paged(**changes):
    cache = Cache.paged([20, 7], 16)
    call = {"q": randn(2, 1, 4, 64), "k_cache": cache.k, "v_cache": cache.v, **cache.indices}
    return call | changes


NEW = randn(2, 1, 2, 64)
ANGLES = torch.ones(64, 16).half()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (dense(q=randn(2, 1, 4, 64).float()), TypeError, "fp16 and bf16 .* torch.float32"),
        (dense(q=randn(2, 1, 4, 64).bfloat16()), TypeError, "query and key must have the same dtype"),
        (dense(q=randn(2, 4, 64)), ValueError, r"q must have shape \(batch_size"),
        (dense(q=randn(2, 1, 5, 64)), ValueError, "must divide number of heads in query: .* 5 .* 2"),
        (dense(q=randn(2, 1, 4, 32)), ValueError, "q and k_cache must have the same head_dim"),
        (dense(q=randn(3, 1, 4, 64)), ValueError, r"cache_seqlens must have shape \(3,\)"),
        (dense(k_cache=randn(2, 25, 2, 64).mT.contiguous().mT), ValueError, "k_cache .* last dimension"),
        (dense(v_cache=randn(2, 24, 2, 64)), ValueError, "k_cache and v_cache must have the same sizes"),
        (dense(cache_seqlens=torch.tensor([3, 4])), TypeError, "cache_seqlens must have dtype int32"),
        (dense(cache_seqlens=int32(26, 0)), ValueError, r"cache_seqlens\[0\]=26 .* capacity is 25"),
        (dense(cache_seqlens=int32(5, -1)), ValueError, r"cache_seqlens\[1\]=-1"),
        (dense(cache_seqlens=26), ValueError, r"cache_seqlens\[0\]=26"),
        (dense(cache_batch_idx=int32(0, 2)), ValueError, r"cache_batch_idx\[1\]=2 must be between 0 and 1"),
        (dense(cache_leftpad=int32(-3, 0)), ValueError, r"cache_leftpad\[0\]=-3"),
        (dense(num_splits=129), ValueError, "num_splits > 128 not supported"),
        (dense(num_splits=-1), ValueError, "num_splits"),
        (dense(softcap=-1.0), ValueError, "softcap must be finite"),
        (dense(alibi_slopes=torch.ones(3)), ValueError, "alibi_slopes must have shape"),
        (dense(sinks=torch.ones(3)), ValueError, "sinks must have shape"),
        (dense(window_size=5), TypeError, "window_size must be a pair"),
        (dense(k=NEW), ValueError, "If key is supplied, value must also be passed in"),
        (dense(v=NEW), ValueError, "v is given without k"),
        (dense(k=NEW, v=NEW, cache_seqlens=None), ValueError, "seqlens_k must also be passed in"),
        (dense(k=NEW, v=randn(2, 2, 2, 64)), ValueError, "k and v must have as many rows"),
        (dense(k=randn(2, 1, 3, 64), v=NEW), ValueError, "k must have shape"),
        (dense(k=NEW, v=NEW, rotary_cos=ANGLES), ValueError, "must be given together"),
        (
            dense(k=NEW, v=NEW, rotary_cos=ANGLES[:, :4], rotary_sin=ANGLES[:, :4]),
            ValueError,
            "rotary_cos must be contiguous",
        ),
        (
            dense(k=NEW, v=NEW, rotary_cos=ANGLES[:24], rotary_sin=ANGLES[:24]),
            ValueError,
            "cos/sin seqlen must be at least the seqlen of KV cache, 25",
        ),
        (
            dense(k=NEW, v=NEW, rotary_cos=ANGLES.float(), rotary_sin=ANGLES.float()),
            TypeError,
            "rotary_cos must have the same dtype as query",
        ),
        (paged(block_table=torch.zeros(2, 3).long()), TypeError, "block_table must have dtype torch.int32"),
        (paged(block_table=torch.zeros(3, 3).int()), ValueError, "block_table must have shape"),
        (paged(block_table=torch.full((2, 3), 99).int()), ValueError, r"block_table\[0, 0\]=99 is no page"),
        (paged(block_table=torch.full((2, 3), -1).int()), ValueError, r"block_table\[0, 0\]=-1 is no page"),
        (paged(cache_seqlens=int32(49, 1)), ValueError, r"cache_seqlens\[0\]=49 .* block_table"),
        (paged(cache_batch_idx=int32(0, 1)), ValueError, "does not support cache_batch_idx"),
        (paged(cache_leftpad=int32(0, 1)), ValueError, "Paged KV and leftpad_k"),
        (
            paged(k_cache=randn(8, 24, 2, 64), v_cache=randn(8, 24, 2, 64)),
            ValueError,
            "block size must be divisible by 16: .* 24",
        ),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        flash_attn_with_kvcache(**call)


def test_fake_tensors_have_no_numbers_to_check():
    call = {name: x.to("meta") if isinstance(x, torch.Tensor) else x for name, x in dense().items()}
    assert flash_attn_with_kvcache(**call).shape == (2, 1, 4, 64)


WILD = [
    dense(cache_seqlens=int32(2**31 - 1, -(2**31))),
    dense(cache_batch_idx=int32(-1, 2**30)),
    dense(cache_leftpad=int32(2**31 - 1, -(2**31))),
    paged(block_table=int32(2**31 - 1, -1, 5, 0, 2**30, 7).view(2, 3)),
    paged(cache_seqlens=int32(2**31 - 1, 2**20)),
]


@pytest.mark.parametrize("call", WILD)
@pytest.mark.parametrize("append", [False, True])
def test_no_index_reaches_outside_the_cache(call, append, monkeypatch):
    """Unchecked, as on a card; the simulator faults at an access beside the tensors."""
    monkeypatch.setenv("FLASHATTN_ROCM_CHECK_INDICES", "0")
    call = dict(call)
    if append and "cache_leftpad" not in call:
        call |= {"k": NEW, "v": NEW, "rotary_cos": ANGLES, "rotary_sin": ANGLES}
    elif append:
        call |= {"k": NEW, "v": NEW}
    for name in ("k_cache", "v_cache"):
        call[name] = call[name].nan_to_num().clone()
    out = flash_attn_with_kvcache(**call)
    assert out.shape == (2, 1, 4, 64)


def test_the_unchecked_card_still_serves_good_sequences(monkeypatch):
    monkeypatch.setenv("FLASHATTN_ROCM_CHECK_INDICES", "0")
    call = paged()
    want = flash_attn_with_kvcache(**call)
    call["block_table"] = call["block_table"].clone()
    call["block_table"][1, 0] = -5
    assert flash_attn_with_kvcache(**call)[0].equal(want[0])


def append(**changes):
    cache = Cache.dense([20, 7])
    call = {"k_cache": cache.k, "v_cache": cache.v, "k": NEW, "v": NEW, **cache.indices}
    return torch.ops.flashattn_rocm.append_kv_(**(call | changes))


def test_append_refuses_before_it_reads():
    turn = {"rotary_cos": ANGLES, "rotary_sin": ANGLES}
    with pytest.raises(TypeError, match=r"k has torch.float16, v has torch.bfloat16"):
        append(v=NEW.bfloat16())
    with pytest.raises(ValueError, match=r"k must have shape \(batch_size, .*; it has shape \[64\]"):
        append(k=NEW[0, 0, 0])
    with pytest.raises(ValueError, match="q must be on the device of k, cpu; it is on meta"):
        append(q=NEW.to("meta"), **turn)
    with pytest.raises(ValueError, match="k_cache must be on the device of k, cpu; it is on meta"):
        append(k_cache=Cache.dense([20, 7]).k.to("meta"))


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("alibi_slopes", torch.ones(4)),
        ("sinks", torch.ones(4)),
        ("block_table", torch.zeros(2, 3).int()),
        ("cache_seqlens", int32(1, 2)),
    ],
)
def test_devices_must_agree(name, tensor):
    with pytest.raises(ValueError, match=f"{name} must be on the device of q, cpu; it is on meta"):
        flash_attn_with_kvcache(**paged(**{name: tensor.to("meta")}))


def test_device_of_packed_offsets():
    cache = Cache.paged([20, 7])
    cu_seqlens_q = int32(0, 1, 2).to("meta")
    with pytest.raises(ValueError, match="cu_seqlens_q must be on the device of q"):
        torch.ops.flashattn_rocm.decode(
            randn(2, 4, 64), cache.k, cache.v, **cache.indices, cu_seqlens_q=cu_seqlens_q, max_seqlen_q=1
        )
