"""Scalar loads: every size and addressing form."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.kit.asm import Snippet
from tests.sim.exec.case import Batch, Case

WORDS = np.random.default_rng(1).integers(0, 1 << 32, 64, np.uint32)
SIZES = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def _destination(first: int, count: int) -> str:
    return f"s{first}" if count == 1 else f"s[{first}:{first + count - 1}]"


def _expected(byte_offset: int, count: int) -> dict[int, int]:
    first = byte_offset // 4
    return {40 + i: int(WORDS[first + i]) for i in range(count)}


def load_cases() -> Iterator[Case]:
    for name, count in SIZES.items():
        target = _destination(40, count)
        for offset_text, at in (("0x0", 0), ("0x34", 0x34), ("s30", 72), ("m0", 16), ("s31", 7)):
            at &= ~3  # the two low address bits are ignored
            body = f"s_load_{name} {target}, s[8:9], {offset_text}"
            wanted = _expected(at, count)
            snippet = Snippet(
                body, sgprs={30: 72, 31: 7}, m0=16, memory=WORDS.tobytes(), read_sgprs=tuple(wanted)
            )
            yield Case(body, snippet, sgprs=wanted, memory=WORDS.tobytes())
    body = "s_load_dwordx2 vcc, s[8:9], 0x8"
    vcc = int(WORDS[2]) | int(WORDS[3]) << 32
    yield Case(body, Snippet(body, memory=WORDS.tobytes()), vcc=vcc)


def negative_offset_cases() -> Iterator[Case]:
    """The immediate is a signed 21-bit number on gfx9."""
    body = "s_add_u32 s20, s8, 0x40\ns_addc_u32 s21, s9, 0\ns_load_dword s40, s[20:21], -0x20"
    snippet = Snippet(body, memory=WORDS.tobytes(), read_sgprs=(40,))
    yield Case(body, snippet, sgprs=_expected(0x20, 1))


def buffer_load_cases() -> Iterator[Case]:
    resource = "s_mov_b32 s20, s8\ns_mov_b32 s21, s9\ns_movk_i32 s22, {records}\ns_mov_b32 s23, 0x27000\n"
    for name, count in SIZES.items():
        for offset_text, at in (("0x0", 0), ("0x1c", 0x1C), ("s30", 40)):
            body = (
                resource.format(records=256)
                + f"s_buffer_load_{name} {_destination(40, count)}, s[20:23], {offset_text}"
            )
            wanted = _expected(at, count)
            snippet = Snippet(body, sgprs={30: 40}, memory=WORDS.tobytes(), read_sgprs=tuple(wanted))
            yield Case(body, snippet, sgprs=wanted)
    # Only the dwords behind the end are missing, and they read as zero.
    body = resource.format(records=24) + "s_buffer_load_dwordx4 s[40:43], s[20:23], 0x10"
    wanted = _expected(16, 2) | {42: 0, 43: 0}
    yield Case(body, Snippet(body, memory=WORDS.tobytes(), read_sgprs=(40, 41, 42, 43)), sgprs=wanted)


def clock_cases() -> Iterator[Case]:
    """Both counters only go forward."""
    for name in ("s_memtime", "s_memrealtime"):
        body = f"""{name} s[20:21]
            s_waitcnt lgkmcnt(0)
            s_sleep 2
            {name} s[22:23]
            s_waitcnt lgkmcnt(0)
            s_sub_u32 s24, s22, s20
            s_subb_u32 s25, s23, s21
            s_ashr_i32 s40, s25, 31"""
        yield Case(body, Snippet(body, read_sgprs=(40,)), sgprs={40: 0})


BATCH = Batch(
    {
        "load": load_cases,
        "negative offset": negative_offset_cases,
        "buffer load": buffer_load_cases,
        "clock": clock_cases,
    }
)


@pytest.mark.parametrize("group", BATCH.groups)
def test_scalar_memory(group: str) -> None:
    BATCH.check(group)
