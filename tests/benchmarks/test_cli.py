"""scripts/benchmark.py on the simulated card."""

import json

import pytest

from flashattn_rocm.benchmarks.cli import main

TINY = ["--shapes", "1,64,64,2,2,32", "--impl", "flashattn_rocm", "torch_math"]


def test_a_row_is_measured_printed_and_written(tmp_path, capsys):
    assert main([*TINY, "--json", str(tmp_path / "b.json"), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    (row,) = json.loads((tmp_path / "b.json").read_text())
    assert (row["bench"], row["impl"], row["backend"], row["dtype"]) == (
        "custom",
        "flashattn_rocm",
        "sim",
        "fp16",
    )
    assert row["cycles"] > 1000
    assert row["ms"] == pytest.approx(row["cycles"] / 1725e3)
    assert 0 < row["valu_busy"] < 100
    assert row["hbm_read_bytes"] >= row["floor_bytes"] == 3 * 64 * 2 * 32 * 2
    assert row["tile"].startswith("d32_m")
    assert "flashattn_rocm" in printed
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "benchmark.md",
        "benchmark.csv",
        "custom-full.png",
    }


def test_what_cannot_run_is_said_and_never_a_row(tmp_path, capsys):
    assert main([*TINY, "--json", str(tmp_path / "b.json"), "--out", str(tmp_path)]) == 0
    reason = "Not run: torch_math: torch has no device on the simulated card"
    assert reason in capsys.readouterr().out
    assert reason in (tmp_path / "benchmark.md").read_text()
    assert "torch_math" not in (tmp_path / "b.json").read_text()


def test_nothing_measured_is_a_failure_and_writes_nothing(tmp_path, capsys):
    file = tmp_path / "b.json"
    file.write_text("of an earlier run")
    written = ["--json", str(file), "--out", str(tmp_path / "out")]
    assert main(["--shapes", "1,64,64,2,2,32", "--impl", "torch_math", *written]) == 1
    assert "torch has no device" in capsys.readouterr().out
    assert file.read_text() == "of an earlier run"
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("arguments", "refused", "by"),
    [
        (["--decode", "--shapes", "1,64,64,2,2,32"], "--shapes", "--decode"),
        (["--decode", "--bench", "fwd-d64"], "--bench", "--decode"),
        (["--decode", "--head-dim", "64"], "--head-dim", "--decode"),
        (["--decode", "--causal", "no"], "--causal", "--decode"),
        (["--decode", "--impl", "triton"], "--impl", "--decode"),
        (["--decode", "--whole"], "--whole", "--decode"),
        (["--shapes", "1,64,64,2,2,32", "--causal", "yes"], "--causal", "--shapes"),
        (["--quick", "--seqlens", "64"], "--seqlens", "--quick"),
    ],
)
def test_an_option_without_effect_is_refused(arguments, refused, by, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert f"argument {refused}: not allowed with argument {by}" in capsys.readouterr().err


def test_head_dims_without_a_triton_tile_are_said(capsys):
    assert main(["--shapes", "1,64,64,2,2,32", "--impl", "triton"]) == 1
    assert "no Triton tile for head dim 32, known are 64, 128" in capsys.readouterr().out


def test_a_missing_triton_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "triton", None)
    assert main(["--shapes", "1,64,64,2,2,64", "--impl", "triton"]) == 1
    assert (
        "Not run: triton: triton is not installed: pip install 'flashattn-rocm[benchmark]'"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shapes", "1,2"], "shape '1,2': allowed is"),
        (["--head-dim", "7"], "no table has such a head dim"),
        (["--shapes", "1,64,64,2,2,520", "--impl", "flashattn_rocm"], "520"),
    ],
)
def test_wrong_input_is_one_sentence(arguments, message, capsys):
    assert main(arguments) == 1
    printed = capsys.readouterr().out
    assert "benchmark: error:" in printed
    assert message in printed


def test_help_states_the_floor(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "compulsory floor: Q, K and V read once" in capsys.readouterr().out
