"""Source values for 64 lanes: the edges of each type first, then random ones."""

import random

import numpy as np
from numpy.typing import NDArray

from tests.kit.asm import LANES
from tests.sim.exec.formats import Format
from tests.sim.exec.ops.op import FORMATS, width


def _float_edges(fmt: Format) -> list[int]:
    one = fmt.bias << fmt.mantissa_bits
    step = 1 << fmt.mantissa_bits
    positive = [
        0,  # zero
        1,  # smallest denormal
        step - 1,  # largest denormal
        step,  # smallest normal
        one,
        one + 1,
        one - 1,
        one - step,  # 0.5
        one + step // 2,  # 1.5
        one + step + step // 4,  # 2.5
        one + (fmt.mantissa_bits - 1) * step + 1,  # odd multiple of one half
        one + 7 * step + 0x1F * (step // 64),
        fmt.infinity - 1,  # largest finite
        fmt.infinity,
        fmt.nan,
        fmt.infinity | 1,  # signalling NaN
    ]
    return positive + [p | fmt.sign_bit for p in positive]


def _integer_edges(n: int) -> list[int]:
    top = 1 << (n - 1)
    return [
        *(0, 1, 2, 7, 15, 16, 31, 32, 33, 63, 64, 65),
        *(top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 2 * top - 32),
        *(0x5555555555555555 % (2 * top), 0xAAAAAAAAAAAAAAAA % (2 * top)),
    ]


def _random_float(fmt: Format, rng: random.Random) -> int:
    """Mostly near 1, so that sums and products neither vanish nor overflow."""
    if rng.random() < 0.2:
        return rng.getrandbits(fmt.width)
    exponent = fmt.bias + rng.randint(-8, 8)
    return (
        rng.getrandbits(1) * fmt.sign_bit | exponent << fmt.mantissa_bits | rng.getrandbits(fmt.mantissa_bits)
    )


def source_values(kind: str, position: int, seed: str) -> list[int]:
    """64 patterns of type `kind` for source number `position`: about half edges, half random.

    The edges are shuffled per source, so that different pairs meet in different opcodes.
    """
    rng = random.Random(f"{seed} {kind} {position}")
    fmt = FORMATS.get(kind)
    edges = _float_edges(fmt) if fmt else _integer_edges(width(kind))
    values = edges + [
        _random_float(fmt, rng) if fmt else rng.getrandbits(width(kind)) for _ in range(LANES - len(edges))
    ]
    if position:
        rng.shuffle(values)
    return values


def registers(kind: str, values: list[int], seed: str) -> list[NDArray[np.uint32]]:
    """The VGPRs that hold `values`: a pair for 64 bits, noise above 16 bits."""
    rng = random.Random(f"{seed} noise")
    if width(kind) == 64:
        low = np.array([v & 0xFFFFFFFF for v in values], np.uint32)
        return [low, np.array([v >> 32 for v in values], np.uint32)]
    if width(kind) == 16:
        values = [v | rng.getrandbits(16) << 16 for v in values]
    return [np.array(values, np.uint32)]
