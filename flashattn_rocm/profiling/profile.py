"""The simulator's profile of one launch, as data classes. Every time in it is simulated."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

WAVE_LANES = 64
SIMDS_PER_CU = 4
MAX_WAVES_PER_SIMD = 10
# Two halves in a packed fma or dot2: 4 flop a lane and clock.
FP16_FLOP_PER_LANE_CLOCK = 4
FP32_FLOP_PER_LANE_CLOCK = 2

# The simulator's key -> the name in reports, in the order of reports.
CAUSE_NAMES = {
    "valu": "VALU issue",
    "lds_pipe": "LDS pipe",
    "lds_latency": "LDS latency",
    "vmem_issue": "VMEM issue",
    "vmem_latency": "VMEM latency",
    "smem_latency": "SMEM latency",
    "barrier": "barrier",
    "salu": "SALU",
    "fetch": "instruction fetch",
    "control": "control",
    "no_wave": "no wave",
}


class ProfileError(RuntimeError):
    """A profile that is missing or contradicts itself."""


@dataclass(frozen=True)
class Card:
    """The simulated card.

    Attributes:
        name: e.g. "AMD Instinct MI50".
        compute_units: with SIMDS_PER_CU SIMDs each.
        clock_mhz: of the compute units.
        hbm_gbps: nominal bandwidth, 1e9 bytes a second.
        launch_us: microseconds that a launch costs beside its kernel's own time.
    """

    name: str
    compute_units: int
    clock_mhz: float
    hbm_gbps: float
    launch_us: float

    def peak_tflops(self, flop_per_lane_clock: int) -> float:
        """Peak of the vector ALUs; each SIMD finishes 16 lanes a clock."""
        lanes = self.compute_units * WAVE_LANES
        return lanes * flop_per_lane_clock * self.clock_mhz * 1e6 / 1e12


@dataclass(frozen=True)
class Occupancy:
    """How many workgroups fit a CU at a time.

    Attributes:
        groups_per_cu: workgroups.
        waves_per_simd: waves that registers allow.
        limited_by: "registers", "LDS" or "workgroup slots".
    """

    groups_per_cu: int
    waves_per_simd: int
    limited_by: str


@dataclass(frozen=True)
class Bytes:
    """Bytes that crossed each level; L1 and L2 count whole 64-byte lines."""

    l1: int
    l2: int
    hbm_read: int
    hbm_write: int


@dataclass(frozen=True)
class InstructionCost:
    """What one instruction of the kernel cost, in all waves.

    Attributes:
        text_offset: bytes from the start of the code object's .text.
        instruction: its disassembly.
        clocks: of SIMDs; a wait counts for the instruction that began it, as s_waitcnt or s_barrier.
        lds_conflict_clocks: that bank conflicts cost, of all CUs.
    """

    text_offset: int
    instruction: str
    clocks: int
    lds_conflict_clocks: int


@dataclass(frozen=True)
class Issue:
    """One instruction of a wave on compute unit 0.

    Attributes:
        simd: 0 to 3.
        wave: waves of the CU in the order of their start.
        clock: at which it was issued.
        clocks: until its result is there (memory: until the data is back).
        kind: "valu", "scalar", "vmem", "lds", "branch", "internal"; "barrier" for s_barrier.
    """

    simd: int
    wave: int
    clock: int
    clocks: int
    kind: str


@dataclass(frozen=True)
class Profile:
    """One timed launch. Counters, causes, instructions and bytes are of the timed workgroups only.

    Attributes:
        kernel: its name.
        grid: workgroups in x, y, z.
        block: work-items in x, y, z.
        card: what it ran on.
        vgprs: per work-item.
        sgprs: per wave.
        lds_bytes: per workgroup, static and dynamic.
        occupancy: residency on a CU.
        groups: workgroups of the launch.
        groups_timed: how many of them ran on the timing model.
        clocks: of the whole launch; extrapolated if groups_timed < groups.
        clocks_timed: of the timed workgroups.
        milliseconds: of the whole launch.
        sampling_error: relative, of clocks; 0 when every group was timed.
        wave_instructions: of the whole launch.
        wave_instructions_timed: of the timed workgroups.
        causes: SIMD clocks by cause.
        instructions: wave instructions by class.
        counters: under rocprof's names; per cent, FetchSize and WriteSize in KiB.
        bytes: by memory level.
        bytes_of_launch: of the whole launch, extrapolated if groups_timed < groups.
        lds_conflict_clocks: clocks that LDS bank conflicts cost.
        by_instruction: in the order of the code; adds up to simd_clocks less those without a wave.
        timeline: the first issues of CU 0; empty unless FLASHATTN_SIM_TIMELINE was set.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    card: Card
    vgprs: int
    sgprs: int
    lds_bytes: int
    occupancy: Occupancy
    groups: int
    groups_timed: int
    clocks: float
    clocks_timed: int
    milliseconds: float
    sampling_error: float
    wave_instructions: int
    wave_instructions_timed: int
    causes: dict[str, int]
    instructions: dict[str, int]
    counters: dict[str, float]
    bytes: Bytes
    bytes_of_launch: Bytes
    lds_conflict_clocks: int
    by_instruction: tuple[InstructionCost, ...] = field(default=(), repr=False)
    timeline: tuple[Issue, ...] = field(default=(), repr=False)

    @property
    def simd_clocks(self) -> int:
        """What the causes must add up to: every clock of every SIMD while timed workgroups ran."""
        return self.clocks_timed * self.card.compute_units * SIMDS_PER_CU

    @property
    def waves_per_group(self) -> int:
        """Waves of a workgroup."""
        x, y, z = self.block
        return -(-x * y * z // WAVE_LANES)

    @property
    def resident_waves_per_simd(self) -> float:
        """Waves on a SIMD when the CU holds as many workgroups as fit."""
        return self.occupancy.groups_per_cu * self.waves_per_group / SIMDS_PER_CU

    @property
    def rounds(self) -> float:
        """How often the launch fills the card."""
        return self.groups / (self.occupancy.groups_per_cu * self.card.compute_units)

    @property
    def limited_by(self) -> str:
        """What keeps more workgroups off a CU."""
        by_waves = self.occupancy.limited_by == "registers"
        if by_waves and self.occupancy.waves_per_simd >= MAX_WAVES_PER_SIMD:
            return "wave slots"
        return self.occupancy.limited_by


def parse_profile(text: str) -> Profile:
    """Reads the simulator's JSON.

    Raises:
        ProfileError: it is not such JSON, or lacks a key.
    """
    try:
        return _profile(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ProfileError(f"this is no profile of the simulator: {error!r} in {text[:200]!r}") from error


def _profile(raw: dict[str, Any]) -> Profile:
    nested: dict[str, Any] = {
        "grid": tuple(raw.pop("grid")),
        "block": tuple(raw.pop("block")),
        "card": Card(**_known(Card, raw.pop("card"))),
        "occupancy": Occupancy(**_known(Occupancy, raw.pop("occupancy"))),
        **{key: Bytes(**_known(Bytes, raw.pop(key))) for key in ("bytes", "bytes_of_launch")},
        "by_instruction": tuple(InstructionCost(*row) for row in raw.pop("by_instruction", [])),
        "timeline": tuple(Issue(*row) for row in raw.pop("timeline", [])),
    }
    return Profile(**nested, **_known(Profile, raw))


def _known(kind: type, raw: dict[str, Any]) -> dict[str, Any]:
    """The keys that `kind` has: a newer simulator may say more."""
    names = {member.name for member in fields(kind)}
    return {key: value for key, value in raw.items() if key in names}


@contextmanager
def timed_launches() -> Iterator[list[Profile]]:
    """Launches on CPU tensors are timed inside the block; about ten times slower, with the same results.

    Yields:
        A list that holds the launches' profiles, in their order, once the block has ended.

    Raises:
        RuntimeError: the package was built without the simulator.
    """
    import flashattn_rocm._C as _C

    profiles: list[Profile] = []
    _C.set_timed(True)
    try:
        yield profiles
    finally:
        _C.set_timed(False)
        profiles += map(_profile, json.loads(_C.profiles()))


def longest(profiles: Sequence[Profile]) -> Profile:
    """The launch that took longest: of a call of several, the one to look at.

    Raises:
        ProfileError: nothing was timed.
    """
    if not profiles:
        raise ProfileError("no launch was timed: run one inside timed_launches()")
    return max(profiles, key=lambda profile: profile.clocks)
