"""scripts/train_gpt.py: the model, runs on both attentions, the verdict and what is written."""

import csv
import json

import pytest
import torch

import train_gpt
from tests.kit.device import DEVICE
from traininglib.attention import on_kernels, on_math
from traininglib.gpt import Gpt, GptConfig
from traininglib.report import judge
from traininglib.run import Run, Schedule, Text, standard_library, train

TINY = GptConfig(layers=2, heads=1, head_dim=32, context=32)
SHORT = Schedule(steps=4, batch=2, judged=4)


def tiny_text():
    data = (torch.arange(4000) * 7 % 64 + 32).to(torch.uint8)
    return Text(data[:3000], data[3000:])


def run(attention, where, seed=3):
    return train(attention, where, seed, tiny_text(), TINY, SHORT, str(DEVICE))


def test_a_byte_is_predicted_from_those_before_it():
    torch.manual_seed(0)
    model = Gpt(TINY).to(DEVICE)
    text = torch.randint(256, (1, 32), device=DEVICE)
    other = text.clone()
    other[0, 20] += 1
    other %= 256
    with torch.no_grad():
        one, two = model(text), model(other)
    assert one.shape == (1, 32, 256)
    assert one[:, :20].equal(two[:, :20])
    assert not one[:, 20:].equal(two[:, 20:])


def test_both_attentions_train_alike_and_every_call_is_counted():
    kernels, math = run("kernels", on_kernels()), run("math", on_math())
    assert kernels.calls == {"fwd": 2 * (4 + 2), "bwd": 2 * 4}
    assert math.calls == {"math": 2 * (4 + 2)}
    assert len(kernels.losses) == 4
    assert kernels.losses[-1] < kernels.losses[0]
    for ours, theirs in zip(
        [*kernels.losses, kernels.final_loss], [*math.losses, math.final_loss], strict=True
    ):
        assert abs(ours - theirs) < 1e-3  # fp16's rounding of attention, 2^-11, in a loss of about 5
    again = run("kernels", on_kernels())
    assert (again.losses, again.final_loss) == (kernels.losses, kernels.final_loss)
    assert run("math", on_math(), seed=4).losses != math.losses


def test_text_is_split():
    text = standard_library(10_000)
    assert (len(text.learned), len(text.held_out)) == (9000, 1000)
    whole = bytes(text.learned) + bytes(text.held_out)
    assert b"import" in whole
    assert 2.5 < text.loss_without_context() < 4.5
    assert Text(text.learned, text.learned[:1]).loss_without_context() > 0
    one_byte = torch.full((100_000,), 65, dtype=torch.uint8)
    assert Text(one_byte, one_byte[:10]).loss_without_context() < 0.01


def runs_of(kernels, math, calls=None):
    calls = {"fwd": 12, "bwd": 8} if calls is None else calls
    return [
        Run(name, seed, [5.5, 5.5], final, calls if name == "kernels" else {"math": 12})
        for name, finals in (("kernels", kernels), ("math", math))
        for seed, final in enumerate(finals)
    ]


def verdict(kernels, math, **keywords):
    return judge(runs_of(kernels, math, **keywords), layers=2, forwards=6, steps=4, loss_without_context=3.0)


MATH = (2.0, 2.1, 2.2)  # standard deviation 0.1


def test_verdict_within_the_noise():
    found = verdict((2.0, 2.19, 2.2), MATH)
    assert found.noise == pytest.approx(0.1)
    assert found.largest_difference == pytest.approx(0.09)
    assert found.passed
    assert "final losses within noise of the seeds" in str(found)


def test_verdict_beyond_the_noise():
    found = verdict((2.0, 2.1, 2.31), MATH)
    assert not found.passed
    assert "NOT within noise" in str(found)
    assert not verdict((1.89, 2.1, 2.2), MATH).passed  # a better loss is another one too


def test_verdict_on_what_did_not_learn_or_ran_elsewhere():
    unlearned = verdict((2.9, 2.95, 3.01), (2.9, 2.95, 3.0))
    assert not unlearned.passed
    assert "NOT learned" in str(unlearned)
    for calls in ({"fwd": 12, "bwd": 7}, {"fwd": 11, "bwd": 8, "math": 1}, {"fwd": 12, "bwd": 8, "math": 1}):
        elsewhere = verdict(MATH, MATH, calls=calls)
        assert not elsewhere.passed
        assert "NOT all attention" in str(elsewhere)


def test_command(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(train_gpt, "CONFIG", TINY)
    monkeypatch.setattr(train_gpt, "SCHEDULE", SHORT)
    monkeypatch.setattr(train_gpt, "standard_library", tiny_text)
    out = tmp_path / "out"
    code = train_gpt.main(["--steps", "3", "--seeds", "5", "6", "--device", str(DEVICE), "--out", str(out)])
    printed = capsys.readouterr().out
    content = json.loads((out / "losses.json").read_text())
    assert code == 1  # three steps are too few to learn
    assert "NOT learned" in printed
    assert content["verdict"]["only_kernels"]
    assert [(each["attention"], each["seed"]) for each in content["runs"]] == [
        ("kernels", 5),
        ("math", 5),
        ("kernels", 6),
        ("math", 6),
    ]
    heading, *lines = csv.reader((out / "losses.csv").read_text().splitlines())
    assert heading == ["step", "kernels seed 5", "math seed 5", "kernels seed 6", "math seed 6"]
    assert len(lines) == 3
    assert (out / "losses.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("options", [["--steps", "0"], ["--seeds", "1"], ["--seeds", "1", "1"]])
def test_bad_options(options, capsys):
    with pytest.raises(SystemExit) as ended:
        train_gpt.main(options)
    assert ended.value.code == 2
    assert f"argument {options[0]}" in capsys.readouterr().err
