"""What a profile says of a launch, in sections of rows. Every time and rate is simulated."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flashattn_rocm.profiling.places import places_of
from flashattn_rocm.profiling.profile import CAUSE_NAMES, MAX_WAVES_PER_SIMD, Issue, Profile, ProfileError
from flashattn_rocm.profiling.rows import Row, Section, share
from flashattn_rocm.profiling.source_lines import SourceLines
from flashattn_rocm.profiling.work import Work

# Causes are counted by visits of a SIMD, so that sum and total differ by a few clocks at a kernel's end.
_CAUSES_TOLERANCE = 0.01

_COUNTER_UNITS = {"FetchSize": "KiB", "WriteSize": "KiB"}


@dataclass(frozen=True)
class Roofline:
    """A launch on the roofline of its card.

    Attributes:
        intensity: useful flop for each byte that crossed HBM.
        reached: simulated useful TFLOPS.
        peak: TFLOPS of the vector ALUs.
        bandwidth: nominal, 1e12 bytes a second.
    """

    intensity: float
    reached: float
    peak: float
    bandwidth: float

    @property
    def attainable(self) -> float:
        """TFLOPS that the roofline allows at this intensity."""
        return min(self.peak, self.intensity * self.bandwidth)


class Report:
    """What a profile says of one launch.

    Attributes:
        profile: the simulator's figures.
        work: what the algorithm needs; None: no TFLOPS, no roofline, no floor.
        sections: the tables.
    """

    def __init__(
        self, profile: Profile, work: Work | None = None, source_lines: SourceLines | None = None
    ) -> None:
        """Checks the profile.

        Args:
            profile: the simulator's figures.
            work: what the algorithm needs.
            source_lines: of the code object, to name instructions by.

        Raises:
            ProfileError: the cycles by cause do not add up to the total within 1 %.
        """
        self.profile = profile
        self.work = work
        self._source_lines = source_lines
        _check_causes(profile)
        self.sections = tuple(self._make_sections())

    def section(self, key: str) -> Section:
        """The section with this key.

        Raises:
            KeyError: there is none.
        """
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(key)

    def roofline(self) -> Roofline | None:
        """The place on the roofline; None where the useful operations are not known."""
        if self.work is None:
            return None
        p = self.profile
        hbm = p.bytes_of_launch.hbm_read + p.bytes_of_launch.hbm_write
        return Roofline(
            intensity=self.work.useful_flop / max(hbm, 1.0),
            reached=self.work.useful_flop / (p.milliseconds * 1e-3) / 1e12,
            peak=p.card.peak_tflops(self.work.flop_per_lane_clock),
            bandwidth=p.card.hbm_gbps / 1e3,
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the simulator's figures as they are, and the report's sections by key and row."""
        profile = dataclasses.asdict(self.profile)
        timeline = profile.pop("timeline")
        profile["by_instruction"] = [list(cost.values()) for cost in profile["by_instruction"]]
        return {
            "simulated": True,
            "profile": profile,
            "report": {
                section.key: {
                    row.name: {"value": row.value, "unit": row.unit, "note": row.note} for row in section.rows
                }
                for section in self.sections
            },
            "timeline": {
                "columns": [column.name for column in dataclasses.fields(Issue)],
                "rows": [list(issue.values()) for issue in timeline],
            },
        }

    def _make_sections(self) -> Iterator[Section]:
        roofline = self.roofline()
        yield Section("time", f"Simulated time of {self.profile.kernel}", tuple(self._time(roofline)))
        yield Section("sampling", "Sampling", tuple(_sampling(self.profile)))
        yield Section("causes", "Simulated SIMD clocks by cause", tuple(_causes(self.profile)))
        yield Section(
            "instructions", "Wave instructions by class, timed workgroups", tuple(_instructions(self.profile))
        )
        yield Section(
            "counters", "Counters under rocprof's names, timed workgroups", tuple(_counters(self.profile))
        )
        if self.profile.by_instruction:
            where = "source line" if self._source_lines is not None else "instruction"
            yield Section(
                "places",
                f"Simulated SIMD clocks by {where}, timed workgroups",
                tuple(places_of(self.profile, self._source_lines, "clocks")),
            )
        if self.profile.lds_conflict_clocks:
            yield Section(
                "lds_conflicts",
                "LDS bank conflicts, timed workgroups",
                tuple(places_of(self.profile, self._source_lines, "lds_conflict_clocks")),
            )
        yield Section("occupancy", "Occupancy", tuple(_occupancy(self.profile)))
        yield Section(
            "bytes", "Simulated bytes by level, whole launch", tuple(_bytes(self.profile, self.work))
        )
        if roofline is not None:
            yield Section("roofline", "Place on the roofline", tuple(_roofline(roofline)))

    def _time(self, roofline: Roofline | None) -> Iterator[Row]:
        p = self.profile
        yield Row(
            "card", f"{p.card.name}, simulated", note=f"{p.card.compute_units} CUs, {p.card.clock_mhz:g} MHz"
        )
        yield Row("grid x block", f"{_extent(p.grid)} x {_extent(p.block)}", note=f"{p.groups} workgroups")
        yield Row("simulated time", p.milliseconds, "ms")
        yield Row("simulated clocks", p.clocks, "clocks")
        if self.work is None or roofline is None:
            return
        yield Row("useful work", self.work.useful_flop / 1e9, "GFLOP")
        share = (
            f"{roofline.reached / roofline.peak:.1%} of {roofline.peak:.1f} TFLOPS ({self.work.peak_name})"
        )
        yield Row("simulated useful rate", roofline.reached, "TFLOPS", share)
        yield Row("simulated share of peak", 100 * roofline.reached / roofline.peak, "%")


def _check_causes(profile: Profile) -> None:
    total, added = profile.simd_clocks, sum(profile.causes.values())
    if abs(added - total) > _CAUSES_TOLERANCE * total:
        raise ProfileError(
            f"cycles by cause of {profile.kernel} add up to {added}, but its SIMDs had {total} clocks: they "
            f"differ by {abs(added - total) / max(total, 1):.1%}, allowed is {_CAUSES_TOLERANCE:.0%}"
        )


def _sampling(p: Profile) -> Iterator[Row]:
    note = "every workgroup was timed" if p.groups_timed == p.groups else "chosen; the rest only ran"
    yield Row("workgroups timed", p.groups_timed, note=f"of {p.groups}: {note}")
    yield Row("wave instructions timed", p.wave_instructions_timed, note=f"of {p.wave_instructions}")
    yield Row("stated sampling error of time", 100 * p.sampling_error, "%")
    note = "workgroups by what the card holds at a time"
    if p.groups_timed != p.groups:
        note += "; the time of the rest follows from a schedule of all workgroups by their instructions"
    yield Row("rounds", p.rounds, note=note)


def _causes(p: Profile) -> Iterator[Row]:
    added = sum(p.causes.values())
    names = [*CAUSE_NAMES, *(key for key in p.causes if key not in CAUSE_NAMES)]
    for key in names:
        if key in p.causes:
            clocks = p.causes[key]
            yield Row(CAUSE_NAMES.get(key, key.replace("_", " ")), clocks, "clocks", share(clocks, added))
    yield Row("sum of causes", added, "clocks", share(added, p.simd_clocks) + " of the total")
    total = f"{p.clocks_timed} clocks x {p.card.compute_units} CUs x 4 SIMDs"
    yield Row("total", p.simd_clocks, "clocks", total)


def _instructions(p: Profile) -> Iterator[Row]:
    added = sum(p.instructions.values())
    for name, count in sorted(p.instructions.items(), key=lambda item: -item[1]):
        yield Row(name, count, note=share(count, added))
    yield Row("all", added)


def _counters(p: Profile) -> Iterator[Row]:
    for name, value in p.counters.items():
        yield Row(name, value, _COUNTER_UNITS.get(name, "%"))
    yield Row("LDS conflict clocks", p.lds_conflict_clocks, "clocks", "of all CUs")


def _occupancy(p: Profile) -> Iterator[Row]:
    o = p.occupancy
    yield Row("workgroups per CU", o.groups_per_cu, note=f"limited by {p.limited_by}")
    yield Row("resident waves per SIMD", p.resident_waves_per_simd, note=f"of {MAX_WAVES_PER_SIMD}")
    yield Row("waves per SIMD by registers", o.waves_per_simd, note=f"of {MAX_WAVES_PER_SIMD}")
    yield Row("limited by", p.limited_by)
    yield Row("VGPRs", p.vgprs, note="of 256")
    yield Row("SGPRs", p.sgprs)
    yield Row("LDS per workgroup", p.lds_bytes, "bytes", "of 65536")


def _bytes(p: Profile, work: Work | None) -> Iterator[Row]:
    all_timed = p.groups_timed == p.groups
    scaled = "all workgroups timed" if all_timed else "extrapolated from the timed workgroups"
    moved = p.bytes_of_launch
    levels = {
        "L1": (moved.l1, None),
        "L2": (moved.l2, None),
        "HBM read": (moved.hbm_read, work.read_bytes if work else None),
        "HBM write": (moved.hbm_write, work.write_bytes if work else None),
    }
    for name, (value, floor) in levels.items():
        against = f"{value / floor:.2f} x the floor; " if floor else ""
        yield Row(name, value, "bytes", against + scaled)
    if work is not None and work.read_bytes is not None and work.write_bytes is not None:
        yield Row("floor: read once", work.read_bytes, "bytes", "Q, K, V")
        yield Row("floor: written once", work.write_bytes, "bytes", "O, LSE")


def _roofline(r: Roofline) -> Iterator[Row]:
    bound = "HBM bandwidth" if r.attainable < r.peak else "the vector ALUs"
    yield Row("arithmetic intensity", r.intensity, "FLOP/byte", "useful operations by simulated HBM bytes")
    yield Row("ridge", r.peak / r.bandwidth, "FLOP/byte")
    yield Row("attainable", r.attainable, "TFLOPS", f"bound by {bound}")
    yield Row("reached (simulated)", r.reached, "TFLOPS", f"{r.reached / r.attainable:.1%} of attainable")


def _extent(extent: tuple[int, int, int]) -> str:
    return "(" + ", ".join(map(str, extent)) + ")"
