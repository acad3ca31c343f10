"""scripts/lora_step.py on a tiny model; the command itself takes the real one."""

import json

import pytest
import torch
from torch import nn

from traininglib.lora import LoraLinear, add_lora

pytest.importorskip("transformers")

import lora_step
from tests.integrations.tiny_models import random_tokens, tiny_llama
from tests.kit.device import DEVICE
from traininglib.attention import on_math


def test_an_adapter_adds_its_product():
    base = nn.Linear(6, 5)
    layer = LoraLinear(base, rank=2, alpha=3.0, generator=torch.Generator().manual_seed(0))
    x = torch.randn(4, 6)
    want = base(x) + x @ (1.5 * layer.b @ layer.a).T
    torch.testing.assert_close(layer(x), want)
    trained = {name for name, parameter in layer.named_parameters() if parameter.requires_grad}
    assert trained == {"a", "b"}


def test_adapters_go_where_they_are_wanted():
    model = tiny_llama()
    adapters = add_lora(model, ("q_proj", "o_proj"), rank=4)
    assert len(adapters) == 2 * model.config.num_hidden_layers
    assert all(name.endswith(("q_proj", "o_proj")) for name in adapters)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert len(trained) == 2 * len(adapters)
    assert all(name.endswith((".a", ".b")) for name in trained)
    assert {layer.a.dtype for layer in adapters.values()} == {torch.float32}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_gradients_of_a_tiny_model(dtype):
    model = tiny_llama()
    rows, loss, calls = lora_step.compare(model, random_tokens(2, 40), dtype, str(DEVICE))
    layers = model.config.num_hidden_layers
    assert calls == {"fwd": layers, "bwd": layers}
    assert 0 < loss < 20
    assert [row.kind for row in rows] == [
        *(f"{name}.{matrix}" for name in lora_step.PROJECTIONS for matrix in "ab"),
        "all",
    ]
    assert [row.tensors for row in rows] == [layers] * 8 + [8 * layers]
    for row in rows:
        assert row.passed, row
        assert row.cosine > 0.99  # whoever computes attention: bf16 layers alone are 8 % off


def test_math_in_place_of_the_kernels_is_told(monkeypatch):
    monkeypatch.setattr(lora_step, "on_kernels", on_math)
    _, _, calls = lora_step.compare(tiny_llama(), random_tokens(1, 10), torch.float16, str(DEVICE))
    assert set(calls) == {"math"}


@pytest.mark.parametrize(
    ("error", "calls", "code"),
    [
        (1.9e-3, {"fwd": 2, "bwd": 2}, 0),
        (2.1e-3, {"fwd": 2, "bwd": 2}, 1),
        (float("nan"), {"fwd": 2, "bwd": 2}, 1),
        (1e-3, {"fwd": 2, "bwd": 1}, 1),
        (1e-3, {"math": 2}, 1),
    ],
)
def test_exit_code(error, calls, code, monkeypatch, capsys):
    smollm = pytest.importorskip("flashattn_rocm.verify.smollm")
    monkeypatch.setattr(smollm, "load_language_model", tiny_llama)
    monkeypatch.setattr(smollm, "load_tokenizer", lambda: lambda *_, **__: {"input_ids": random_tokens(1, 9)})
    rows = [lora_step.Row(kind, 2, error, 1e-3, 0.9999) for kind in ("q_proj.a", "all")]
    monkeypatch.setattr(lora_step, "compare", lambda *_: (rows, 1.5, calls))
    assert lora_step.main([]) == code
    assert ("FAIL" in capsys.readouterr().out) == (not error < 2e-3)
    assert lora_step.main(["--json"]) == code
    assert json.loads(capsys.readouterr().out)["ok"] == (code == 0)


def test_bad_options(capsys):
    with pytest.raises(SystemExit) as ended:
        lora_step.main(["--batch", "0"])
    assert ended.value.code == 2
    assert "argument --batch" in capsys.readouterr().err
