"""scripts/tune_mi50.py as a program on the simulated card, and what it refuses on a card."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import flashattn_rocm._C as _C
from buildlib import tile_config
from buildlib.paths import CONFIGS, ROOT
from buildlib.tile_config import BwdShape, GradientKernel, TileShape, load_config
from tunelib import cli
from tunelib.config_file import read_user_rows
from tunelib.passes import FORWARD, PASSES
from tunelib.tiles import Space, shape_of

_SCRIPT = ROOT / "scripts/tune_mi50.py"
_CONFIG = load_config(("gfx906",))
_TILE = next(row.name for row in _CONFIG.fwd if row.head_dim == 32)
_BWD_TILE = "dkdv_d32_m32n32w4p32"


def _start(arguments, **options):
    command = [sys.executable, _SCRIPT, "--backend", "sim", "--quick", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # A shell's background jobs, pytest among them, ignore Ctrl-C, and hand that down.
    return subprocess.Popen(
        command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **pipes, **options
    )


def _run(*arguments: object, seconds=300):
    """Returns status, output and errors."""
    process = _start(arguments)
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    out = tmp_path_factory.mktemp("tuned")
    status, text, err = _run("--only", _TILE, "--out", out)
    assert status == 0, err
    (out / "out.txt").write_text(text)
    return out


def test_a_trial_is_checked_timed_and_recorded(tuned):
    (trial,) = json.loads((tuned / "trials.json").read_text())
    assert trial["name"] == _TILE
    assert trial["verdict"] == "timed"
    assert 0 < trial["max_error"] < trial["allowed_error"]
    built = next(row for row in _C.fwd_kernels() if row["name"] == f"flashattn_fwd_f16_{_TILE}")
    assert trial["lds_bytes"] == built["lds_bytes"]
    assert trial["workgroups_per_cu"] == built["workgroups_per_cu"]
    assert sum(trial["causes"].values()) == pytest.approx(100, abs=2)
    (line,) = csv.DictReader((tuned / "trials.csv").open())
    assert float(line["tflops"]) == trial["tflops"]
    assert line["step_full"] == str(trial["clocks"]["step_full"])
    for name in ("heatmap_d32.png", "roofline_d32.png"):
        assert (tuned / name).read_bytes().startswith(b"\x89PNG")
    assert "simulated" in (tuned / "out.txt").read_text()


@pytest.fixture(scope="module")
def tuned_bwd(tmp_path_factory):
    out = tmp_path_factory.mktemp("tuned_bwd")
    status, text, err = _run("--pass", "bwd", "--only", _BWD_TILE, "--out", out)
    assert status == 0, err
    (out / "out.txt").write_text(text)
    return out


def test_a_trial_of_the_backward_is_checked_timed_and_recorded(tuned_bwd):
    (trial,) = json.loads((tuned_bwd / "trials.json").read_text())
    assert (trial["name"], trial["verdict"], trial["clocks"]) == (_BWD_TILE, "timed", None)
    assert 0 < trial["max_error"] < trial["allowed_error"]
    kernel = GradientKernel(tile=BwdShape(**trial["tile"]), element="f16")
    assert trial["lds_bytes"] == _C.bwd_lds_budget(kernel.keys)["total"]
    assert sum(trial["causes"].values()) == pytest.approx(100, abs=2)
    # 60 CUs with all that fit, blocks of 32 keys, each beside 1024 queries; four products.
    flop = 60 * trial["workgroups_per_cu"] * 32 * 1024 * 32 * 2 * 4
    assert trial["tflops"] == pytest.approx(flop / (trial["cycles"] / 1.725e9) / 1e12, rel=1e-4)
    (line,) = csv.DictReader((tuned_bwd / "trials.csv").open())
    assert (line["gradient"], float(line["tflops"])) == ("dkdv", trial["tflops"])
    for name in ("heatmap_dkdv_d32.png", "roofline_dkdv_d32.png"):
        assert (tuned_bwd / name).read_bytes().startswith(b"\x89PNG")
    assert "simulated" in (tuned_bwd / "out.txt").read_text()


def test_clocks_are_those_that_are_shipped(tuned):
    (trial,) = json.loads((tuned / "trials.json").read_text())
    shipped = next(row.clocks for row in load_config(("gfx906",)).fwd if row.name == _TILE)
    assert trial["clocks"] == pytest.approx(shipped.model_dump(), rel=0.02, abs=100)


def test_the_same_command_tries_nothing_twice(tuned):
    before = (tuned / "journal.jsonl").read_text()
    status, _, err = _run("--only", _TILE, "--out", tuned, "--resume")
    assert status == 0, err
    assert (tuned / "journal.jsonl").read_text() == before


def test_ctrl_c_keeps_what_is_done(tmp_path):
    journal = tmp_path / "journal.jsonl"
    process = _start(["--only", "d32_m64*", "--out", tmp_path])
    while process.poll() is None and not (journal.is_file() and '{"trial"' in journal.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert "stopped; the same command goes on from here" in err
    done = json.loads((tmp_path / "trials.json").read_text())
    assert 1 <= journal.read_text().count('{"trial"') <= len(done)
    assert all(trial["verdict"] != "ended the tuner" for trial in done)


def test_rows_go_to_the_user_s_file(tuned, tmp_path, monkeypatch):
    """The choice among what the journal holds; no tile is left to try."""
    trial = tuned / "journal.jsonl"
    (tmp_path / "journal.jsonl").write_text(trial.read_text())
    tile = next(row for row in _CONFIG.fwd if row.name == _TILE)
    monkeypatch.setattr(Space, "quick_tiles", lambda *_: [shape_of(tile, TileShape)])
    config = tmp_path / "config/gfx906.toml"
    arguments = ["--backend", "sim", "--quick", "--head-dims", "32", "--out", str(tmp_path)]
    assert cli.main([*arguments, "--config", str(config)]) == 0
    assert [row.name for row in read_user_rows(config)] == [_TILE]


class _Card:
    simulated = False
    name, arch, compute_units, clock_mhz, pci = "AMD Instinct MI50", "gfx906", 60, 1725.0, "0000:03:00.0"


def _choose_among_the_journal(tuned_bwd, tmp_path, monkeypatch, arguments=()):
    """The choice among what the journal holds; no tile is left to try."""
    (tmp_path / "journal.jsonl").write_text((tuned_bwd / "journal.jsonl").read_text())
    (trial,) = json.loads((tuned_bwd / "trials.json").read_text())
    monkeypatch.setattr(Space, "quick_tiles", lambda *_: [BwdShape(**trial["tile"])])
    options = ["--pass", "bwd", "--backend", "sim", "--quick", "--head-dims", "32", "--out", str(tmp_path)]
    assert cli.main([*options, *arguments]) == 0


def test_rows_of_the_backward_go_to_the_repository(tuned_bwd, tmp_path, monkeypatch):
    (tmp_path / "gfx906.toml").write_text((CONFIGS / "gfx906.toml").read_text())
    monkeypatch.setattr(tile_config, "CONFIGS", tmp_path)
    monkeypatch.setattr(cli, "CONFIGS", tmp_path)
    monkeypatch.setattr(cli, "DEFAULT", ("gfx906",))
    _choose_among_the_journal(tuned_bwd, tmp_path, monkeypatch, ["--write-repo"])
    (trial,) = json.loads((tuned_bwd / "trials.json").read_text())
    (row,) = (row for row in load_config(("gfx906",)).bwd if row.head_dim == 32 and row.gradient == "dkdv")
    assert (row.name, row.elements) == (_BWD_TILE, ("f16", "bf16"))
    assert row.workgroups_per_cu == trial["workgroups_per_cu"]
    assert row.why == f"the quickest of 1 tiles: {trial['tflops']:.2f} TFLOPS simulated"


def test_the_user_s_file_has_no_rows_of_the_backward(tuned_bwd, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    _choose_among_the_journal(tuned_bwd, tmp_path, monkeypatch)
    assert "No rows were written: --write-repo puts them into configs/" in capsys.readouterr().out
    assert not (tmp_path / "config").exists()
    with pytest.raises(SystemExit):
        cli.main(["--pass", "bwd", "--config", str(tmp_path / "user.toml")])
    assert "--config is for --pass fwd: rows of --pass bwd go to --write-repo" in capsys.readouterr().err


@pytest.fixture
def card(tmp_path, monkeypatch):
    """A card that main() finds, at rest; returns its folder in sysfs."""
    folder = tmp_path / "sys" / _Card.pci
    folder.mkdir(parents=True)
    (folder / "pp_dpm_sclk").write_text("0: 701Mhz\n1: 1725Mhz *\n")
    (folder / "gpu_busy_percent").write_text("0\n")
    monkeypatch.setattr(cli, "HipDevice", lambda simulated: _Card())
    monkeypatch.setattr(cli, "CardState", lambda pci: _card_state(folder))
    return folder


def _card_state(folder):
    from tunelib.card_state import CardState

    return CardState(folder.name, folder.parent)


def _refused(tmp_path, capsys):
    config = tmp_path / "user.toml"
    out = ["--out", str(tmp_path / "out"), "--config", str(config)]
    assert cli.main(["--backend", "hip", "--quick", "--head-dims", "32", *out]) == 1
    assert not config.exists()
    return capsys.readouterr().err


def test_a_busy_card_is_refused(card, tmp_path, capsys):
    (card / "gpu_busy_percent").write_text("88\n")
    err = _refused(tmp_path, capsys)
    assert "the card is busy: 88 %" in err
    assert "Nothing was written to a configuration." in err


def test_another_arch_is_refused(card, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_Card, "arch", "gfx90a")
    assert "is gfx90a, not gfx906: ask for it with --arch gfx90a" in _refused(tmp_path, capsys)


def test_a_throttling_card_is_recorded_and_not_written(card, tmp_path, capsys, monkeypatch):
    class Throttles:
        def run(self, tiles):
            (card / "pp_dpm_sclk").write_text("0: 701Mhz *\n1: 1725Mhz\n")
            self.state.sample()
            return iter(())

    tuned = replace(FORWARD, bench=lambda device, state: setattr(Throttles, "state", state))
    monkeypatch.setitem(PASSES, "fwd", tuned)
    monkeypatch.setattr(cli, "Tuner", lambda *parts: Throttles())
    assert "the card throttled: its clock fell to 701 of 1725 MHz" in _refused(tmp_path, capsys)
    assert (tmp_path / "out/trials.csv").is_file()


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_from_a_clean_state_the_shipped_rows_are_chosen(tmp_path):
    """Of one head dim and the short list."""
    config = tmp_path / "chosen.toml"
    arguments = ("--head-dims", 32, "--out", tmp_path / "out", "--fresh", "--config", config)
    status, _, err = _run(*arguments, seconds=1100)
    assert status == 0, err
    shipped = [row for row in load_config(("gfx906",)).fwd if row.head_dim == 32]
    chosen = read_user_rows(config)
    assert [row.name for row in chosen] == [row.name for row in shipped]
    assert "| flashattn_fwd_f16_d32_" in (tmp_path / "out/launches.md").read_text()
    for row, other in zip(chosen, shipped, strict=True):
        assert row.clocks.model_dump() == pytest.approx(other.clocks.model_dump(), rel=0.02, abs=100)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_from_a_clean_state_the_shipped_rows_of_the_backward_stay(tmp_path):
    """Of one head dim and the short list."""
    arguments = ("--pass", "bwd", "--head-dims", 32, "--out", tmp_path, "--fresh")
    status, out, err = _run(*arguments, seconds=1100)
    assert status == 0, err
    shipped = [row for row in load_config(("gfx906",)).bwd if row.head_dim == 32]
    chosen = dict(line.split(": ", 1) for line in out.splitlines() if line.startswith(("dq_d32", "dkdv_d32")))
    assert set(chosen) == {row.name for row in shipped}
    assert all(row.for_elements == ("f16", "bf16") for row in shipped)
    for why in chosen.values():
        assert re.fullmatch(
            r"the (quickest|best for f16 and bf16, number \d+) of \d\d tiles: .* TFLOPS simulated", why
        )
