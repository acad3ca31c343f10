"""References of loads, stores and atomics, common to LDS, global, flat and buffer memory."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.exec import formats
from tests.sim.exec.formats import F32, F64
from tests.sim.exec.ops.op import signed


@dataclass(frozen=True)
class Access:
    """A load or store without its address space's prefix.

    Attributes:
        size: bytes in memory.
        signed: a load sign-extends to 32 bits.
        half: "" for whole registers, "lo" or "hi" for one half of a VGPR.
    """

    suffix: str
    size: int
    signed: bool = False
    half: str = ""

    @property
    def registers(self) -> int:
        return max(self.size // 4, 1)


_NARROW_LOADS = (("ubyte", 1, False), ("sbyte", 1, True), ("short", 2, False))
VMEM_LOADS = [
    Access("load_ubyte", 1),
    Access("load_sbyte", 1, signed=True),
    Access("load_ushort", 2),
    Access("load_sshort", 2, signed=True),
    Access("load_dword", 4),
    Access("load_dwordx2", 8),
    Access("load_dwordx3", 12),
    Access("load_dwordx4", 16),
    *(Access(f"load_{name}_d16", size, sign, "lo") for name, size, sign in _NARROW_LOADS),
    *(Access(f"load_{name}_d16_hi", size, sign, "hi") for name, size, sign in _NARROW_LOADS),
]
VMEM_STORES = [
    Access("store_byte", 1),
    Access("store_short", 2),
    Access("store_byte_d16_hi", 1, half="hi"),
    Access("store_short_d16_hi", 2, half="hi"),
    Access("store_dword", 4),
    Access("store_dwordx2", 8),
    Access("store_dwordx3", 12),
    Access("store_dwordx4", 16),
]
_NARROW_READS = (("u8", 1, False), ("i8", 1, True), ("u16", 2, False))
LDS_LOADS = [
    Access("read_u8", 1),
    Access("read_i8", 1, signed=True),
    Access("read_u16", 2),
    Access("read_i16", 2, signed=True),
    Access("read_b32", 4),
    Access("read_b64", 8),
    Access("read_b96", 12),
    Access("read_b128", 16),
    *(Access(f"read_{name}_d16", size, sign, "lo") for name, size, sign in _NARROW_READS),
    *(Access(f"read_{name}_d16_hi", size, sign, "hi") for name, size, sign in _NARROW_READS),
]
LDS_STORES = [
    Access("write_b8", 1),
    Access("write_b16", 2),
    Access("write_b8_d16_hi", 1, half="hi"),
    Access("write_b16_d16_hi", 2, half="hi"),
    Access("write_b32", 4),
    Access("write_b64", 8),
    Access("write_b96", 12),
    Access("write_b128", 16),
]


def loaded_words(access: Access, raw: bytes) -> list[int]:
    """The VGPRs that a load leaves behind."""
    if access.size < 4:
        value = int.from_bytes(raw, "little")
        value = signed(value, 8 * access.size) & 0xFFFFFFFF if access.signed else value
        # With SRAM ECC on, as on every MI50, a d16 load zeroes the half that it does not name.
        return [{"": value, "lo": value & 0xFFFF, "hi": value << 16 & 0xFFFFFFFF}[access.half]]
    return [int.from_bytes(raw[i : i + 4], "little") for i in range(0, access.size, 4)]


def stored_bytes(access: Access, words: list[int]) -> bytes:
    if access.size < 4:
        value = words[0] >> (16 if access.half == "hi" else 0)
        return (value & ((1 << 8 * access.size) - 1)).to_bytes(access.size, "little")
    return b"".join(word.to_bytes(4, "little") for word in words)


@dataclass(frozen=True)
class Atomic:
    """`meaning` maps (memory, data[, second data]) to the new content of memory, per `bits`."""

    name: str
    bits: int
    meaning: Callable[..., int]
    sources: int = 1


def _wrap(function: Callable[[int, int], int], bits: int) -> Callable[[int, int], int]:
    return lambda old, data: function(old, data) & ((1 << bits) - 1)


def _signed(pick: Callable[[int, int], int], bits: int) -> Callable[[int, int], int]:
    return lambda old, data: pick(signed(old, bits), signed(data, bits)) & ((1 << bits) - 1)


def _meanings(bits: int) -> dict[str, Callable[[int, int], int]]:
    return {
        "add": _wrap(lambda old, data: old + data, bits),
        "sub": _wrap(lambda old, data: old - data, bits),
        "rsub": _wrap(lambda old, data: data - old, bits),
        "smin": _signed(min, bits),
        "smax": _signed(max, bits),
        "umin": min,
        "umax": max,
        "and": lambda old, data: old & data,
        "or": lambda old, data: old | data,
        "xor": lambda old, data: old ^ data,
        "inc": lambda old, data: 0 if old >= data else old + 1,
        "dec": lambda old, data: data if old == 0 or old > data else old - 1,
        "swap": lambda old, data: data,
    }


VMEM_ATOMICS = [
    Atomic(f"atomic_{name}{suffix}", bits, meaning)
    for bits, suffix in ((32, ""), (64, "_x2"))
    for name, meaning in _meanings(bits).items()
    if name != "rsub"
] + [
    # The new value comes first in the data registers, then the one to compare with.
    Atomic(
        f"atomic_cmpswap{suffix}", bits, lambda old, new, compare: new if old == compare else old, sources=2
    )
    for bits, suffix in ((32, ""), (64, "_x2"))
]

_LDS_NAMES = {
    **{name: (name, "u") for name in ("add", "sub", "rsub", "inc", "dec")},
    **{name: (name, "b") for name in ("and", "or", "xor")},
    "smin": ("min", "i"),
    "smax": ("max", "i"),
    "umin": ("min", "u"),
    "umax": ("max", "u"),
}


def _lds_atomics(bits: int) -> list[Atomic]:
    meanings = _meanings(bits)
    out = [Atomic(f"{name}_{kind}{bits}", bits, meanings[key]) for key, (name, kind) in _LDS_NAMES.items()]
    # LDS takes the value to compare with first, then the new one.
    out.append(
        Atomic(f"cmpst_b{bits}", bits, lambda old, compare, new: new if old == compare else old, sources=2)
    )
    out.append(Atomic(f"mskor_b{bits}", bits, lambda old, mask, data: old & ~mask | data, sources=2))
    return out


LDS_ATOMICS = [
    *_lds_atomics(32),
    *_lds_atomics(64),
    Atomic("add_f32", 32, lambda old, data: formats.add(F32, old, data)),
    Atomic("min_f32", 32, lambda old, data: formats.minimum(F32, old, data)),
    Atomic("max_f32", 32, lambda old, data: formats.maximum(F32, old, data)),
    Atomic("min_f64", 64, lambda old, data: formats.minimum(F64, old, data)),
    Atomic("max_f64", 64, lambda old, data: formats.maximum(F64, old, data)),
]
