"""Key heads under way at a time: few, so that K and V are read seldom, but enough for L2's channels."""

import pytest

import flashattn_rocm._C as _C
from tests.kit.card.drive import FwdArgs

_ROWS = {row["name"].removeprefix("flashattn_fwd_"): row for row in _C.fwd_kernels()}
_D128, _D64 = _ROWS["f16_d128_m128n64w4p32_in_turns"], _ROWS["f16_d64_m128n64w4p64"]


def heads_together(row, seqlen, heads, heads_kv):
    addresses = dict.fromkeys(("q", "k", "v", "out", "lse"), 0)
    sizes = (1, seqlen, seqlen, heads, heads_kv, row["head_dim"])
    launch = _C.fwd_launch(row, addresses, *sizes, False, 1.0, compute_units=60)
    return FwdArgs.from_buffer_copy(launch["arguments"]).heads_together


@pytest.mark.parametrize(
    ("row", "seqlen", "heads", "heads_kv", "expected"),
    [
        (_D128, 32768, 32, 32, 2),  # a head's rows are on one channel, and two are wanted
        (_D128, 8192, 48, 48, 2),
        (_D128, 4096, 32, 32, 4),  # beginnings count
        (_D128, 32768, 32, 8, 1),  # rows 2 KiB apart are on two channels
        (_D128, 512, 32, 32, 1),  # 4 blocks a head: 16 heads are under way anyhow
        (
            _ROWS["f16_d128_m64n32w4p32_in_turns"],
            32768,
            32,
            32,
            4,
        ),  # half the rows read K and V twice as often
        (_D64, 32768, 32, 32, 4),  # two neighbours share a channel
        (_ROWS["f16_d256_m48n64w4p32_in_turns"], 32768, 8, 8, 4),  # 3, but 8 heads do not divide by it
        (_ROWS["f32_d64_m128n64w4p16_in_turns"], 32768, 16, 16, 2),
    ],
)
def test_of_60_compute_units(row, seqlen, heads, heads_kv, expected):
    assert heads_together(row, seqlen, heads, heads_kv) == expected
