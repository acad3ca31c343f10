"""Every example runs, reaches the kernels, and agrees with what it compares itself with."""

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests.kit.calls import CallRecorder
from tests.kit.cases import randn

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEEDS = {
    "transformers_model": "transformers",
    "diffusers_model": "diffusers",
    "transformers_trainer": "accelerate",
}
SCRIPTS = sorted(file.stem for file in EXAMPLES.glob("*.py"))


@pytest.fixture
def run(capsys):
    """Runs an example; returns what it printed and how often it reached the op."""

    def run_script(name: str) -> tuple[str, int]:
        with CallRecorder() as recorder:
            runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        return capsys.readouterr().out, len(recorder.calls)

    return run_script


@pytest.mark.usefixtures("installed_shim")
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name, run):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    printed, calls = run(name)
    assert calls > 0
    difference = re.search(r"largest difference: (\S+)", printed)
    if difference is not None:
        assert float(difference.group(1)) < 2e-2
    else:
        assert printed.splitlines()[-1] == "same tokens"
    assert "left to torch" not in printed


def test_comfyui_node():
    """As ComfyUI loads it, with the model patcher's few attributes that it uses."""
    names = runpy.run_path(str(EXAMPLES / "comfyui_node/__init__.py"))
    (node,) = names["NODE_CLASS_MAPPINGS"].values()
    assert names["NODE_CLASS_MAPPINGS"].keys() == names["NODE_DISPLAY_NAME_MAPPINGS"].keys()
    assert node.INPUT_TYPES() == {"required": {"model": ("MODEL",)}}
    original = SimpleNamespace(model_options={"transformer_options": {}})
    original.clone = lambda: SimpleNamespace(model_options={"transformer_options": {}})
    (patched,) = getattr(node(), node.FUNCTION)(original)
    assert original.model_options == {"transformer_options": {}}
    attention = patched.model_options["transformer_options"]["optimized_attention_override"]
    q = randn(1, 9, 80, seed=1)
    split = q.unflatten(-1, (2, 40)).transpose(1, 2)
    want = torch.nn.functional.scaled_dot_product_attention(split, split, split).transpose(1, 2).flatten(2)
    with CallRecorder() as recorder:
        got = attention(None, q, q, q, heads=2)
    assert len(recorder.calls) == 1
    assert (got - want).abs().max() < 3e-3


def test_every_example_is_listed():
    text = (EXAMPLES / "README.md").read_text()
    for name in [f"{script}.py" for script in SCRIPTS] + ["comfyui_node/"]:
        assert f"[{name}](" in text


def test_the_shim_is_the_one_that_runs(installed_shim, run):
    run("flash_attn_shim")
    assert Path(sys.modules["flash_attn"].__file__).is_relative_to(installed_shim)
