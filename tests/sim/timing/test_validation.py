"""The validation table: its fast lines stay in their band, and the command reports what it found."""

import json
from pathlib import Path

import pytest

from flashattn_rocm.sim.bench import Bench
from flashattn_rocm.sim.published import AIM, OWN_BAND, UNEXPLAINED, Figure, load_figures
from flashattn_rocm.sim.validate import Result, main
from tests.sim.timing.kernels import card, profile

FIGURES = load_figures()
KEYS = {"name", "source", "published", "unit", "simulated", "ratio", "fitted"}


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(card())


@pytest.mark.parametrize("figure", [f for f in FIGURES if f.fast], ids=lambda f: f.name)
def test_a_fast_line_is_in_its_band(bench: Bench, figure: Figure) -> None:
    result = Result(figure, bench.simulate(figure))
    assert result.in_band, f"{result.ratio:.3f} is outside {figure.band}"


def test_the_attention_tile_has_the_published_mix() -> None:
    # A step of a wave: 512 dot2, 528 packed, 288 other VALU; 208 reads, 12 writes, 20 exchanges; loads.
    more, one = (profile("attention_d256_counted", 1, n) for n in (2, 1))
    step = {name: (count - one["instructions"][name]) / 4 for name, count in more["instructions"].items()}
    assert step["valu"] == pytest.approx(512 + 528 + 288, rel=0.005)
    assert step["lds"] == pytest.approx(208 + 12 + 20, rel=0.02)
    assert step["vmem"] == 10
    assert more["lds_bytes"] == 27_136
    assert more["occupancy"]["groups_per_cu"] == 2


def test_names_are_unique() -> None:
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)


def test_a_band_other_than_the_aim_is_explained() -> None:
    for figure in FIGURES:
        if figure.band != AIM:
            assert figure.note.startswith((UNEXPLAINED, OWN_BAND)), figure.name


def test_a_fitted_line_says_what_it_set() -> None:
    for figure in FIGURES:
        if figure.fitted:
            assert "set " in figure.note or "stated rate" in figure.note, figure.name


def test_the_command_writes_one_object_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert main(["--only", "occupancy, 24", "--json", str(report)]) == 0
    figure, opcodes = (json.loads(line) for line in report.read_text().splitlines())
    assert set(figure) == KEYS
    assert figure["ratio"] == 1.0
    assert opcodes["opcodes_known"] >= opcodes["opcodes_tested"] > 0
    assert "occupancy, 24 VGPRs" in capsys.readouterr().out


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "no such figure"]) == 2
    assert "no such figure" in capsys.readouterr().err
