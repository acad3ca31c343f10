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
    assert plan(rows=8, columns=512)["splits"] == 7
    assert plan(rows=8)["splits"] == 15


def test_tiles_of_the_same_keys_fill_rounds():
    """They share what they read, so an empty place costs as much as in a card full of instructions."""
    assert plan(rows=32)["splits"] == 15  # 480 workgroups of 120 at a time, not 96


def test_a_large_batch_needs_few_splits():
    assert plan(batch=64, heads_kv=8)["splits"] <= 8
    assert plan(batch=64, heads_kv=8, keys=1024)["splits"] == 1


def test_sequences_of_unknown_lengths_are_balanced():
    """The grid has room for what the card runs at once and one a sequence, or for an even batch's splits."""
    found = plan(batch=8, heads_kv=1, own_lengths=True)
    assert (found["splits"], found["at_once"], found["slots"]) == (15, 120, 128)
    found = plan(batch=8, heads_kv=8, keys=8192, own_lengths=True)
    assert (found["splits"], found["at_once"], found["slots"]) == (1, 15, 23)
    found = plan(batch=64, heads_kv=8, own_lengths=True)
    assert found["slots"] == 64 * found["splits"]


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 1},
        {"batch": 8, "own_lengths": False},
        {"batch": 8, "num_splits": 3},
        {"batch": 8, "heads_kv": 8, "keys": 4096},  # not worth a second launch
        {"batch": 64, "heads_kv": 128, "keys": 400},  # the card is full
    ],
    ids=str,
)
def test_what_is_not_balanced(options):
    found = plan(**{"own_lengths": True, **options})
    assert found["at_once"] == 0
    assert found["slots"] == options["batch"] * found["splits"]


def test_the_callers_number_is_taken():
    assert plan(num_splits=37, keys=100)["splits"] == 37
