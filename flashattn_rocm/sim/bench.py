"""Turns the simulated clocks of the validation kernels into the published units."""

from dataclasses import dataclass

from flashattn_rocm.sim.card import GROUP_THREADS, TimedCard
from flashattn_rocm.sim.published import Figure

_GROUP_WAVES = GROUP_THREADS // 64
_STREAM_GROUPS = 8  # of a CU: enough loads in flight, and the footprint stays small
# Times that the card is filled. From 5 on, the simulator times two fills and extrapolates.
_FEW_FILLS, _MORE_FILLS = 5, 7
_SIMDS = 4  # of a CU
_PREFIX = {"G": 1e9, "T": 1e12}


@dataclass(frozen=True)
class _Steady:
    """What a part of a launch cost in steady state."""

    clocks: float
    valu_clocks: float  # of all SIMDs that the launch's timed workgroups ran on
    valu_instructions: float  # of wave
    groups: int
    iterations: int  # of each group
    compute_units: int
    clock_mhz: float

    @property
    def clocks_of_iteration(self) -> float:
        """Of one group's iteration, on a CU of its own."""
        return self.clocks * self.compute_units / (self.groups * self.iterations)


class Bench:
    """The validation kernels on the simulated card. Lines that share a kernel share its runs."""

    def __init__(self, card: TimedCard) -> None:
        self._card = card
        self._steady: dict[tuple[str, int, str], _Steady] = {}

    def simulate(self, figure: Figure) -> float:
        """The simulated value of `figure`, in its unit."""
        if figure.unit == "waves/SIMD":
            return float(self._card.time(figure.kernel, 1, 1)["occupancy"]["waves_per_simd"])
        if figure.unit == "us":
            return self._card.microseconds_between_events(figure.kernel, 1, 1)
        part = self._part(figure, figure.kernel)
        if figure.unit == "clk/instruction":
            return part.clocks_of_iteration / (_GROUP_WAVES * figure.work)
        if figure.unit == "x":
            return self._part(figure, figure.baseline).clocks_of_iteration / part.clocks_of_iteration
        if figure.unit == "% VALU":
            return 100 * part.valu_clocks / (part.clocks * part.compute_units * _SIMDS)
        if figure.unit == "ms":
            clocks = figure.work * part.clocks / part.valu_instructions
            return clocks / (part.clock_mhz * 1e3) / _speed(figure, part)
        work = part.groups * GROUP_THREADS * part.iterations * figure.work
        rate = work / (part.clocks / (part.clock_mhz * 1e6))
        return rate * _speed(figure, part) / _PREFIX[figure.unit[0]]

    def _part(self, figure: Figure, kernel: str) -> _Steady:
        key = (kernel, figure.iterations, figure.steady)
        if key not in self._steady:
            self._steady[key] = self._steady_state(*key)
        return self._steady[key]

    def _steady_state(self, kernel: str, iterations: int, steady: str) -> _Steady:
        """The difference of two launches, in which launch, cold start and tail cancel."""
        probe = self._card.time(kernel, 1, 1)
        units, mhz = int(probe["card"]["compute_units"]), float(probe["card"]["clock_mhz"])
        fill = units * int(probe["occupancy"]["groups_per_cu"])
        if steady == "fills":
            groups = (_MORE_FILLS - _FEW_FILLS) * fill
            shapes = [(_FEW_FILLS * fill, iterations), (_MORE_FILLS * fill, iterations)]
        else:
            groups = fill if steady == "loop" else _STREAM_GROUPS * units
            shapes = [(groups, iterations), (groups, 2 * iterations)]
        few, more = (self._card.time(kernel, *shape) for shape in shapes)

        return _Steady(
            clocks=more["clocks"] - few["clocks"],
            valu_clocks=more["causes"]["valu"] - few["causes"]["valu"],
            valu_instructions=more["instructions"]["valu"] - few["instructions"]["valu"],
            groups=groups,
            iterations=iterations,
            compute_units=units,
            clock_mhz=mhz,
        )


def _speed(figure: Figure, part: _Steady) -> float:
    """How much faster than the simulated card the publication's board is, by clock and CUs."""
    if figure.board is None:
        return 1.0
    own = part.compute_units * part.clock_mhz
    return figure.board.compute_units * figure.board.clock_mhz / own
