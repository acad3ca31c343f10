"""Finds the quickest tiles for the card in this machine, or for the simulated one.

Every tile that fits is compiled, checked against float64 and timed. Each trial is recorded at once, so that
a run that was stopped goes on where it ended. With --write-repo the best rows go into configs/<arch>.toml for
the next build; else those of the forward go to the user's configuration, which flashattn_rocm reads at the
first call. Of the backward a build has one tile for each kind of call: a user's file has nothing to choose.
"""

import argparse
import fnmatch
import hashlib
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from buildlib.archs import DEFAULT, SUPPORTED
from buildlib.errors import BuildError
from buildlib.paths import BUILD, CONFIGS
from buildlib.tile_config import Element, FwdTile, TileConfig, TileShape, load_config
from flashattn_rocm.sim.hip import simulator_library
from flashattn_rocm.tuning.user_config import user_config_file
from tunelib.card_state import CardState
from tunelib.compiler import TileCompiler
from tunelib.config_file import read_user_rows, write_repo_config, write_user_config
from tunelib.fwd_bench import ForwardBench
from tunelib.fwd_choose import row_of
from tunelib.hip_device import DeviceError, HipDevice
from tunelib.journal import Journal
from tunelib.passes import PASSES, Choice, Pass
from tunelib.plots import write_plots
from tunelib.records import trial_table, write_launches, write_records
from tunelib.trial import Trial, Verdict
from tunelib.tuner import Tuner
from tunelib.whole_launches import WholeLaunches

# Of trials and of whole launches on a card: with the choice and the plots below five minutes.
_QUICK_SECONDS, _QUICK_LAUNCH_SECONDS = 220.0, 20.0
_NO_TERMINAL_WIDTH = 160


class RefusalError(Exception):
    """Why nothing is measured or written; one sentence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line.

    Returns:
        0; 1 when the device may not be measured or something is missing; 130 when it was stopped by Ctrl-C.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    options.tuned = PASSES[options.tuned]
    if options.config and not options.tuned.in_user_file:
        parser.error(f"--config is for --pass fwd: rows of --pass {options.tuned.name} go to --write-repo")
    console = Console()
    if not console.is_terminal:
        console = Console(width=_NO_TERMINAL_WIDTH)
    try:
        return _tune(options, console)
    except (BuildError, DeviceError, RefusalError) as error:
        text = str(error).rstrip(".")
        print(f"tune_mi50: {text}. Nothing was written to a configuration.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("tune_mi50: stopped; the same command goes on from here.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tune_mi50.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--pass",
        dest="tuned",
        choices=PASSES,
        default="fwd",
        help="what to tune; fwd (default): the forward; bwd: the backward",
    )
    parser.add_argument(
        "--head-dims", type=_integers, metavar="D,D", help="default: those of configs/<arch>.toml"
    )
    parser.add_argument(
        "--backend",
        choices=("auto", "hip", "sim"),
        default=os.environ.get("FLASHATTN_ROCM_BACKEND", "auto"),
        help="hip: the card; sim: the simulated one; auto (default): the card if there is one",
    )
    parser.add_argument("--arch", choices=SUPPORTED, default="gfx906", help="that the card must have")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="only the rows of configs/<arch>.toml and the usual block sizes; within five minutes on a card",
    )
    parser.add_argument("--only", metavar="PATTERN", help="only tiles whose name matches; writes no rows")
    journal = parser.add_mutually_exclusive_group()
    journal.add_argument(
        "--resume",
        action="store_true",
        help="go on with the trials in --out (the default, if they are there)",
    )
    journal.add_argument("--fresh", action="store_true", help="forget the trials in --out")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="default: build/tuning/<pass>-<arch>-<hip or sim>"
    )
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--config", type=Path, metavar="FILE", help="the user's file; default: the XDG path")
    target.add_argument("--write-repo", action="store_true", help="write configs/<arch>.toml")
    target.add_argument("--no-write", action="store_true", help="write no rows")
    return parser


def _integers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be integers with commas between") from None


def _tune(options: argparse.Namespace, console: Console) -> int:
    config = load_config((options.arch,))
    device = HipDevice(simulated=_is_simulated(options.backend))
    state = None if device.simulated else CardState(device.pci)
    _refuse_unfit(device, state, options.arch)
    tuned: Pass = options.tuned
    tiles = _tiles(options, config)
    where = "simulated" if device.simulated else device.name
    out = options.out or BUILD / "tuning" / f"{tuned.name}-{device.arch}-{_kind(device)}"
    compiler = TileCompiler(BUILD / "tuning" / "kernels")
    journal = Journal(out / "journal.jsonl", _run_facts(device, compiler, tuned), fresh=options.fresh)
    if journal.stale:
        console.print("The trials there are of other sources or another device; beginning anew.")
    limited = options.quick and not device.simulated
    console.print(f"{len(tiles)} tiles on {device.name}, {device.arch}, {device.compute_units} CUs; {out}")
    bench = tuned.bench(device, state)
    try:
        _run(Tuner(device, bench, compiler, journal, _QUICK_SECONDS if limited else None), tiles, console)
    finally:
        trials = [journal.trials[tile.name] for tile in tiles if tile.name in journal.trials]
        files = write_records(trials, out)
        files += write_plots(trials, out, device.compute_units, device.clock_mhz, where)
    console.print(trial_table(trials, where))
    for file in files:
        console.print(f"wrote {file}", soft_wrap=True, highlight=False)
    if len(trials) < len(tiles):
        console.print(f"The time was over after {len(trials)} of {len(tiles)} tiles; run it again to go on.")
        unfinished = {tile.head_dim for tile in tiles if tile.name not in journal.trials}
        trials = [trial for trial in trials if trial.tile.head_dim not in unfinished]
    if options.only or options.no_write:
        return 0
    if state is not None and (why := state.why_throttled()):
        raise RefusalError(f"{why}.")
    launches = None
    if isinstance(bench, ForwardBench):
        seconds = _QUICK_LAUNCH_SECONDS if limited else None
        launches = WholeLaunches(device, bench, compiler, journal, seconds)
    try:
        _write_rows(options, config, trials, device, compiler, launches, where, console)
    finally:
        if launches is not None and launches.means:
            file = write_launches(launches.means, journal.launches, out)
            console.print(f"wrote {file}", soft_wrap=True, highlight=False)
    if launches is not None and launches.out_of_time:
        console.print("The time for whole launches was over: estimates chose. Run it again to go on.")
    return 0


def _kind(device: HipDevice) -> str:
    return "sim" if device.simulated else "hip"


def _is_simulated(backend: str) -> bool:
    return backend == "sim" or (backend == "auto" and not Path("/dev/kfd").exists())


def _refuse_unfit(device: HipDevice, state: CardState | None, arch: str) -> None:
    """Raises RefusalError for a card that is not the one to tune, or is not at rest."""
    if device.arch != arch:
        raise RefusalError(
            f"{device.name} is {device.arch}, not {arch}: ask for it with --arch {device.arch}."
        )
    if state is not None and (why := state.why_busy()):
        raise RefusalError(f"{why}.")


def _tiles(options: argparse.Namespace, config: TileConfig) -> list[TileShape]:
    space = options.tuned.space
    head_dims = options.head_dims or list(dict.fromkeys(row.head_dim for row in space.rows(config)))
    enumerate_ = space.quick_tiles if options.quick else space.all_tiles
    tiles = [tile for head_dim in head_dims for tile in enumerate_(head_dim, config)]
    if options.only:
        tiles = [tile for tile in tiles if fnmatch.fnmatch(tile.name, options.only)]
    if not tiles:
        raise RefusalError(f"no tile of head dims {head_dims} is left to try.")
    return tiles


def _run_facts(device: HipDevice, compiler: TileCompiler, tuned: Pass) -> dict[str, Any]:
    """What a trial depends on beside its tile."""
    model = hashlib.sha256(simulator_library().read_bytes()).hexdigest() if device.simulated else ""
    return {
        "device": device.name,
        "arch": device.arch,
        "compute_units": device.compute_units,
        "kernels": compiler.inputs(device.arch, tuned.name),
        "simulator": model,
    }


def _run(tuner: Tuner, tiles: Sequence[TileShape], console: Console) -> None:
    best: dict[str, float] = defaultdict(float)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("tuning", total=len(tiles))
        for trial in tuner.run(tiles):
            best[trial.group] = max(best[trial.group], trial.tflops or 0.0)
            text = f"{trial.group}, best {best[trial.group]:.2f} TFLOPS"
            progress.update(task, advance=1, description=text)


def _write_rows(
    options: argparse.Namespace,
    config: TileConfig,
    trials: Sequence[Trial],
    device: HipDevice,
    compiler: TileCompiler,
    launches: WholeLaunches | None,
    where: str,
    console: Console,
) -> None:
    archs = DEFAULT if options.write_repo else (device.arch,)
    tuned: Pass = options.tuned

    @cache
    def fit(tile: TileShape, element: Element) -> int:
        for arch in archs:
            if not _workgroups_per_cu(compiler, tile, arch, element):
                console.print(
                    f"{tile.name} is passed over: with {element} it does not build for {arch}, or spills."
                )
                return 0
        return _workgroups_per_cu(compiler, tile, device.arch, element)

    rows = tuned.choose(trials, Choice(config, device.compute_units, fit, where, launches))
    for row in rows:
        console.print(f"{row.name}: {row.why}", soft_wrap=True, highlight=False)
    if options.write_repo:
        file = CONFIGS / f"{options.arch}.toml"
        write_repo_config(file, rows, tuned.space.rows(config))
    elif tuned.in_user_file:
        file = options.config or user_config_file(device.arch)
        chosen = [row for row in rows if isinstance(row, FwdTile)]
        write_user_config(file, [*chosen, *_also_built(config, chosen, trials)], read_user_rows(file))
    else:
        console.print("No rows were written: --write-repo puts them into configs/ for the next build.")
        return
    console.print(f"wrote {file}", soft_wrap=True, highlight=False)


def _workgroups_per_cu(compiler: TileCompiler, tile: TileShape, arch: str, element: Element) -> int:
    """Of a kernel that may ship: 0 where it does not build or spills."""
    try:
        built = compiler.compile(tile, arch, element)
    except BuildError:
        return 0
    return 0 if built.spills or built.resources.scratch_bytes else built.workgroups_per_cu


def _also_built(config: TileConfig, rows: Sequence[FwdTile], trials: Sequence[Trial]) -> list[FwdTile]:
    """The shipped rows that were not chosen: beside measured clocks theirs must be measured too."""
    timed = {trial.tile.name: trial for trial in trials if trial.verdict == Verdict.TIMED}
    chosen = {row.name for row in rows}
    return [row_of(timed[row.name], row.why) for row in config.fwd if row.name in timed.keys() - chosen]
