"""Heat maps of BLOCK_M x BLOCK_N, and the tiles below the roof of the LDS pipe and the vector units."""

from collections.abc import Sequence
from pathlib import Path

from flashattn_rocm.profiling.plots import figure_class
from flashattn_rocm.profiling.profile import FP16_FLOP_PER_LANE_CLOCK, WAVE_LANES
from tunelib.products import products_of
from tunelib.trial import Trial, Verdict

_DPI = 120
_BYTES_PER_CLOCK = 128  # of LDS, a CU


def write_plots(
    trials: Sequence[Trial], folder: Path, compute_units: int, clock_mhz: float, where: str
) -> list[Path]:
    """Draws heatmap_d<D>.png and roofline_d<D>.png for each head dim, heatmap_dq_d<D>.png for each gradient.

    Args:
        trials: of one device.
        folder: made if it is missing.
        compute_units: of the card.
        clock_mhz: of the card.
        where: "simulated", or the card's name.

    Raises:
        ImportError: matplotlib is not installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    peak = compute_units * WAVE_LANES * FP16_FLOP_PER_LANE_CLOCK * clock_mhz / 1e6
    files = []
    for group in sorted({trial.group for trial in trials}):
        some = [t for t in trials if t.group == group and t.tile.scores == "plain"]
        timed = [t for t in some if t.verdict == Verdict.TIMED]
        if not timed:
            continue
        files += [folder / f"heatmap_{group}.png", folder / f"roofline_{group}.png"]
        _draw_heat_map(some, files[-2], f"{group}, best of each block size, TFLOPS {where}")
        bandwidth = compute_units * _BYTES_PER_CLOCK * clock_mhz / 1e6  # TB/s
        _draw_roofline(timed, files[-1], peak, bandwidth, f"{group}, {where}")
    return files


def dot2_flop_per_lds_byte(trial: Trial) -> float:
    """Useful flop of a step for each byte that its waves read from LDS as operands of the products."""
    tile, products = trial.tile, products_of(trial.tile)
    rows, keys = tile.block_m // tile.waves // 4, tile.block_n // 16
    # A lane's bytes: Q and K for each score, P and V for each part of O, and so on; 64 lanes a wave.
    scores = sum(columns * 2 * (rows + keys) for columns in products.scores)
    sums = sum(tile.block_n * 2 * (rows + columns // 16) for columns in products.sums)
    flop = 2 * tile.block_m * tile.block_n * products.columns
    return flop / ((scores + sums) * WAVE_LANES * tile.waves)


def _draw_heat_map(trials: Sequence[Trial], file: Path, title: str) -> None:
    rows, columns = (sorted({getattr(t.tile, key) for t in trials}) for key in ("block_m", "block_n"))
    best: dict[tuple[int, int], Trial] = {}
    for trial in trials:
        cell = trial.tile.block_m, trial.tile.block_n
        if cell not in best or (trial.tflops or 0) > (best[cell].tflops or 0):
            best[cell] = trial
    values = [[best[m, n].tflops or 0.0 if (m, n) in best else 0.0 for n in columns] for m in rows]
    figure = figure_class()(figsize=(2 + 1.3 * len(columns), 2 + 0.6 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(values, cmap="viridis", aspect="auto", vmin=0)
    for y, block_m in enumerate(rows):
        for x, block_n in enumerate(columns):
            if (block_m, block_n) not in best:
                continue
            found = best[block_m, block_n]
            text = f"{found.tflops:.1f}" if found.tflops else found.verdict.value
            dark = values[y][x] < max(map(max, values)) / 2
            axes.text(x, y, text, ha="center", va="center", color="white" if dark else "black", fontsize=8)
    axes.set(xlabel="BLOCK_N", ylabel="BLOCK_M", title=title)
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    figure.colorbar(image, label="TFLOPS")
    figure.savefig(file, dpi=_DPI)


def _draw_roofline(trials: Sequence[Trial], file: Path, peak: float, bandwidth: float, title: str) -> None:
    figure = figure_class()(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    intensity = [dot2_flop_per_lds_byte(trial) for trial in trials]
    left, right = min(intensity) / 1.5, max(*intensity, peak / bandwidth) * 1.5
    axes.plot([left, peak / bandwidth, right], [left * bandwidth, peak, peak], color="black")
    for together in sorted({trial.workgroups_per_cu for trial in trials}):
        points = [
            (i, t.tflops) for i, t in zip(intensity, trials, strict=True) if t.workgroups_per_cu == together
        ]
        axes.plot(*zip(*points, strict=True), "o", label=f"{together} a CU", alpha=0.7)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="useful FLOP per byte of LDS read",
        ylabel="TFLOPS",
        title=f"Roofline of the LDS pipe, {title}",
    )
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.grid(which="both", alpha=0.2)
    axes.legend(fontsize=8)
    figure.savefig(file, dpi=_DPI)
