"""Compiles the microbenchmark kernels and turns their simulated clocks into the published units."""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from flashattn_rocm.sim.card import GROUP_THREADS, TimedCard
from flashattn_rocm.sim.published import Figure

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "csrc" / "sim" / "validation" / "microbenchmarks.hip"

BUFFER_BYTES = 64 << 20  # the largest footprint: a KV cache of 32 heads x 128 x 4096 floats

_GROUP_WAVES = GROUP_THREADS // 64
_STREAM_GROUPS = 8  # of a CU: enough loads in flight, and the footprint stays small
# Times that the card is filled. From 5 on, the simulator times two fills and extrapolates.
_FEW_FILLS, _MORE_FILLS = 5, 7
_PREFIX = {"G": 1e9, "T": 1e12}


def compile_microbenchmarks() -> bytes:
    """The gfx906 code object of microbenchmarks.hip.

    Raises:
        FileNotFoundError: this is not a source tree, so there is nothing to compile.
        RuntimeError: no compiler was found, or it failed; the text says why.
    """
    if not SOURCE.is_file():
        raise FileNotFoundError(f"{SOURCE} is not there: validation needs the source tree")
    scripts = str(REPOSITORY / "scripts")
    if scripts not in sys.path:
        sys.path.append(scripts)
    from buildlib.errors import BuildError
    from buildlib.toolchain import find_device_compiler, find_device_libs, find_linker, hip_include_flags

    try:
        compiler = find_device_compiler()
        find_linker(compiler)
        flags = [f"--rocm-device-lib-path={find_device_libs(compiler)}", *hip_include_flags()]
    except BuildError as error:
        raise RuntimeError(str(error)) from error
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "microbenchmarks.co"
        command = [
            compiler.path,
            *("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", "--offload-arch=gfx906"),
            *("-O3", "-std=c++20", "-ffp-contract=off", "-mcode-object-version=5", *flags),
            *("-o", str(output), str(SOURCE)),
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{SOURCE.name} does not compile:\n{done.stderr}")
        return output.read_bytes()


@dataclass(frozen=True)
class _Steady:
    """What a part of a launch cost in steady state."""

    clocks: float
    groups: int
    iterations: int  # of each group
    compute_units: int
    clock_mhz: float


class Bench:
    """The microbenchmarks on the simulated card. Lines that share a kernel share its runs."""

    def __init__(self, card: TimedCard) -> None:
        self._card = card
        self._steady: dict[tuple[str, int], _Steady] = {}

    def simulate(self, figure: Figure) -> float:
        """The simulated value of `figure`, in its unit."""
        if figure.unit == "waves/SIMD":
            return float(self._card.time(figure.kernel, 1, 1)["occupancy"]["waves_per_simd"])
        key = (figure.kernel, figure.iterations)
        if key not in self._steady:
            self._steady[key] = self._steady_state(figure)
        part = self._steady[key]
        if figure.unit == "clk/instruction":
            waves_of_cu = part.groups * _GROUP_WAVES / part.compute_units
            return part.clocks / (waves_of_cu * part.iterations * figure.work)
        work = part.groups * GROUP_THREADS * part.iterations * figure.work
        rate = work / (part.clocks / (part.clock_mhz * 1e6))
        if figure.board:
            rate *= figure.board.compute_units * figure.board.clock_mhz
            rate /= part.compute_units * part.clock_mhz
        return rate / _PREFIX[figure.unit[0]]

    def _steady_state(self, figure: Figure) -> _Steady:
        """The difference of two launches, in which launch, cold start and tail cancel."""
        probe = self._card.time(figure.kernel, 1, 1)
        units, mhz = int(probe["card"]["compute_units"]), float(probe["card"]["clock_mhz"])
        fill = units * int(probe["occupancy"]["groups_per_cu"])

        def clocks(groups: int, iterations: int) -> float:
            return float(self._card.time(figure.kernel, groups, iterations)["clocks"])

        n = figure.iterations
        if figure.streams:
            groups = _STREAM_GROUPS * units
            return _Steady(clocks(groups, 2 * n) - clocks(groups, n), groups, n, units, mhz)
        spent = clocks(_MORE_FILLS * fill, n) - clocks(_FEW_FILLS * fill, n)
        return _Steady(spent, (_MORE_FILLS - _FEW_FILLS) * fill, n, units, mhz)
