"""Compiles a generated unit for the card and for the host, with the same clang."""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HEADERS = Path(__file__).parent
# The same floating point and the same definition of signed overflow on both sides. Half precision
# rounds after every operation, as the card does.
SEMANTICS = (
    "-std=c++20",
    "-ffp-contract=off",
    "-fwrapv",
    "-fno-math-errno",
    "-fno-strict-aliasing",
    "-w",
)
# Without unaligned-access-mode clang keeps 4-byte alignment for dwords, as the simulator demands.
CARD = (
    *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc", "-nogpulib"),
    *("-Xclang", "-target-feature", "-Xclang", "-unaligned-access-mode"),
    # clang 19 places such arrays of a lane at multiples of their size, not of their alignment.
    *("-mllvm", "-disable-promote-alloca-to-lds"),
)
HOST = (
    "-x",
    "c++",
    "-O1",
    "-march=x86-64-v3",
    "-Xclang",
    "-ffloat16-excess-precision=none",
    "-fPIC",
    "-shared",
)


@dataclass(frozen=True)
class Unit:
    """One generated source, compiled for both sides; the card's code by optimisation level."""

    cards: dict[str, bytes]
    host: ctypes.CDLL


def compiler() -> str:
    """clang++ with the AMDGPU target; raises FileNotFoundError when there is none."""
    clang = shutil.which("clang++-19") or shutil.which("clang++")
    if clang is None:
        raise FileNotFoundError("clang++ with the AMDGPU target is not installed (package clang-19)")
    return clang


def _compile(flags: list[str], source: Path, output: Path) -> None:
    command = [compiler(), *SEMANTICS, *flags, f"-I{HEADERS}", str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    # clang 19 may fold a DPP move into a 64-bit conversion, which has no DPP form, and then stops.
    if "Invalid dpp_ctrl" in done.stderr:
        done = subprocess.run([*command, "-DHIDE_DPP"], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)}\n{done.stderr[:4000]}")


def build(text: str, levels: Sequence[str], folder: Path) -> Unit:
    """Compiles `text` for the host, and at each -O<level> for the card. Raises ValueError."""
    source, host = folder / "unit.cpp", folder / "unit.so"
    source.write_text(text)
    _compile(list(HOST), source, host)
    cards = {}
    for level in levels:
        card = folder / f"unit{level}.co"
        _compile([*CARD, "--offload-arch=gfx906", f"-O{level}"], source, card)
        cards[level] = card.read_bytes()
    return Unit(cards, ctypes.CDLL(str(host)))
