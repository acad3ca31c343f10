"""What is made of measurements."""

import csv
import json

import pytest

from flashattn_rocm.benchmarks.device import Measurement
from flashattn_rocm.benchmarks.plots import write_plots
from flashattn_rocm.benchmarks.result import make_row
from flashattn_rocm.benchmarks.shapes import bench_cases, parse_shape
from flashattn_rocm.benchmarks.tables import markdown, write_csv, write_json

# The keys that other programs read.
KEYS = [
    *(
        "bench",
        "impl",
        "backend",
        "dtype",
        "batch",
        "seqlen_q",
        "seqlen_k",
        "heads_q",
        "heads_kv",
        "head_dim",
    ),
    *(
        "causal",
        "cycles",
        "ms",
        "tflops",
        "valu_busy",
        "hbm_read_bytes",
        "hbm_write_bytes",
        "floor_bytes",
        "tile",
    ),
]

CASE = bench_cases(["fwd-d64"], [1024])[0]
SIMULATED = Measurement(
    ms=2.0,
    peak_tflops=20.0,
    kernel="some_kernel",
    cycles=3.45e6,
    valu_busy=50.0,
    hbm_read_bytes=12_582_912,
    hbm_write_bytes=100,
    sampling_error=0.015,
)


def rows():
    ours = make_row(CASE, "flashattn_rocm", "sim", "m64", SIMULATED)
    rival = make_row(CASE, "triton", "sim", "m32", Measurement(ms=5.0, peak_tflops=20.0))
    return [ours, rival]


def test_useful_work_and_floor():
    ours = rows()[0]
    assert ours.result.tflops == pytest.approx(4 * 16 * 64 * 1024**2 / 2e-3 / 1e12)
    assert ours.result.floor_bytes == 3 * 16 * 64 * 1024 * 2  # Q, K and V once
    assert ours.reads_over_floor == 2.0
    assert ours.share_of_peak == ours.result.tflops / 20


def test_json_has_the_promised_keys(tmp_path):
    write_json(rows(), tmp_path / "b.json")
    written = json.loads((tmp_path / "b.json").read_text())
    assert [list(row) for row in written] == [KEYS, KEYS]
    assert written[0]["bench"] == "fwd-d64"
    assert written[0]["causal"] is False
    assert written[1]["cycles"] is None


def test_csv_has_the_same_columns(tmp_path):
    write_csv(rows(), tmp_path / "b.csv")
    with (tmp_path / "b.csv").open() as file:
        first, second = csv.DictReader(file)
    assert list(first) == KEYS
    assert (first["ms"], second["cycles"]) == ("2.0", "")


def test_markdown_compares_within_the_row_of_a_shape():
    other = make_row(bench_cases(["fwd-d64"], [512])[0], "flashattn_rocm", "sim", "m64", SIMULATED)
    custom = make_row(parse_shape("1,64,128,2,2,64"), "triton", "hip", "", Measurement(1.0, 20.0))
    text = markdown([*rows(), other, custom], ["a note"])
    assert "* a note" in text
    assert "## Diffusion: B1 H16 D64, fp16, not causal" in text
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if "|" in line]
    table = {(line[0], line[1]): dict(zip(lines[0], line, strict=True)) for line in lines}
    ours = table["S 1024", "flashattn_rocm"]
    assert ours["x triton"] == "2.50"
    assert ours["HBM read / floor"] == "2.00"
    assert ours["sampling error %"] == "1.5"
    assert table["S 512", "flashattn_rocm"]["x triton"] == ""
    assert table["S 1024", "triton"]["VALU busy %"] == ""
    assert ("B1 H2/2 D64 S 64 x 128", "triton") in table


def test_a_plot_for_each_table(tmp_path):
    paths = write_plots(
        [*rows(), make_row(parse_shape("1,64,64,2,2,64,causal"), "x", "sim", "", SIMULATED)], tmp_path
    )
    assert [path.name for path in paths] == ["fwd-d64-full.png", "custom-causal.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
