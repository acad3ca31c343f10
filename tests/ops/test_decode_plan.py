"""Which kernel a decode call takes, and into how many parts the keys are split."""

import pytest

import flashattn_rocm._C as _C


def plan(batch=1, heads_kv=8, rows=4, keys=32768, columns=128, **options):
    return _C.plan_decode(batch, heads_kv, rows, keys, columns, **options)


@pytest.mark.parametrize(
    ("rows", "bf16", "held", "tiles"),
    [
        (1, False, 4, 1),
        (4, False, 4, 1),
        (5, False, 8, 1),
        (8, True, 8, 1),
        (12, False, 8, 2),
        (12, True, 8, 2),
        (40, False, 8, 5),
    ],
)
def test_the_smallest_tile_that_holds_all_rows(rows, bf16, held, tiles):
    found = plan(rows=rows, bf16=bf16)
    assert (found["rows"], found["tiles"]) == (held, tiles)


@pytest.mark.parametrize(
    ("columns", "dim"), [(16, 64), (64, 64), (72, 128), (128, 128), (129, 256), (512, 512)]
)
def test_the_least_padding(columns, dim):
    assert f"_d{dim}r" in plan(columns=columns)["kernel"]


def test_latents_have_tiles_of_their_own():
    assert plan(columns=512, rope=64)["kernel"] == "flashattn_decode_f16_d512r4w4_rope64"
    assert "rope" not in plan(columns=512)["kernel"]


def test_16_rows_fit_at_head_dim_64_alone():
    assert plan(rows=12, columns=64)["rows"] == 16
    assert plan(rows=12, columns=64, bf16=True)["rows"] == 8


def test_rows_at_odd_addresses_have_their_own_kernels():
    assert plan(chunks=False)["kernel"].endswith("_elements")


def test_no_kernel_is_an_error():
    with pytest.raises(IndexError, match="no decode kernel for head_dim 513"):
        plan(columns=513)


@pytest.mark.parametrize("keys", [1, 255, 500])
def test_few_keys_stay_together(keys):
    assert plan(keys=keys)["splits"] == 1


def test_the_card_is_filled_in_one_round():
    """8 key heads on 60 compute units of one or two workgroups: 7 and 15 splits leave no second round."""
    assert plan(rows=8)["splits"] == 7
    assert plan(rows=4)["splits"] == 15


def test_a_large_batch_needs_few_splits():
    assert plan(batch=64, heads_kv=8)["splits"] <= 8
    assert plan(batch=64, heads_kv=8, keys=1024)["splits"] == 1


def test_the_callers_number_is_taken():
    assert plan(num_splits=37, keys=100)["splits"] == 37
