"""SmolLM2 by a KV cache on the card, beside torch's math, and a batch beside its prompts alone."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from demolib import cached
from demolib.card import attention_on_torch_math, counted

if TYPE_CHECKING:
    from rich.progress import Progress
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["Generation", "batch_part", "compare_generations", "generate_by_math", "generate_part"]

NAME = "SmolLM2-135M-Instruct"
PAGE_SIZE = 16
BATCH_TOKENS = 6
# Of unlike lengths, so that the batch is ragged. The best token leads by 0.8 or more at each step, while a
# product of more rows is rounded otherwise by up to 0.1.
BATCH_PROMPTS = (
    "Name the capital of Italy.",
    "The MI50 is a graphics card for servers that was released in 2018. Repeat this text.",
    "Write one sentence on the sea in autumn.",
)


@dataclasses.dataclass
class Generation:
    """Greedy tokens of one run and the logits (steps, vocabulary), float32, that they were chosen from."""

    tokens: list[int]
    logits: Tensor
    seconds: float


def generate_by_cache(model: PreTrainedModel, prompt: Tensor, tokens: int) -> Generation:
    """By flash_attn_with_kvcache: a step for the prompt (tokens,), then one for each further token."""
    started = time.monotonic()
    found, logits = cached.generate(model, [prompt], tokens)
    return Generation(found[0].tolist(), logits[0], time.monotonic() - started)


def generate_by_math(model: PreTrainedModel, prompt: Tensor, tokens: int) -> Generation:
    """By transformers' own cache and torch's math."""
    from transformers import DynamicCache

    started = time.monotonic()
    logits: list[Tensor] = []
    cache, ids = DynamicCache(config=model.config), prompt[None]
    with attention_on_torch_math(model), torch.no_grad():
        while len(logits) < tokens:
            logits.append(model(ids, cache=cache, use_cache=True, logits_to_keep=1).logits[0].float())
            ids = logits[-1].argmax(-1)[None]
    found = torch.cat(logits)
    return Generation(found.argmax(-1).tolist(), found, time.monotonic() - started)


def compare_generations(card: Generation, math: Generation) -> dict[str, Any]:
    """Equal tokens, and the logits over the steps that saw the same tokens before them."""
    equal = 0
    for one, other in zip(card.tokens, math.tokens, strict=False):
        if one != other:
            break
        equal += 1
    # The first step that chose differently still saw equal tokens, so its logits count.
    steps = min(equal + 1, len(card.tokens), len(math.tokens))
    best = math.logits[:steps].topk(2).values
    return {
        "equal_tokens": equal,
        "all_tokens_equal": card.tokens == math.tokens,
        "largest_logit_difference": float((card.logits[:steps] - math.logits[:steps]).abs().max()),
        "smallest_lead_of_best_token": float((best[:, 0] - best[:, 1]).min()),
    }


def generate_part(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    tokens: int,
    progress: Progress,
) -> dict[str, Any]:
    """One prompt, by a dense cache on the card and by torch's math."""
    layers = model.config.num_hidden_layers
    ids = chat_ids(tokenizer, prompt)
    running = progress.add_task(f"{NAME}: attention on the card", total=layers * tokens)
    with counted(model, progress, running) as use:
        card = generate_by_cache(model, ids, tokens)
    math = generate_by_math(model, ids, tokens)
    comparison = compare_generations(card, math)
    on_card = use.attention_calls == layers * tokens and use.idle_calls == 0
    return {
        "model": NAME,
        "layers": layers,
        "prompt": prompt,
        "prompt_tokens": len(ids),
        "text": _answer(tokenizer, card.tokens),
        "math_text": _answer(tokenizer, math.tokens),
        "tokens": card.tokens,
        "math_tokens": math.tokens,
        **comparison,
        **dataclasses.asdict(use),
        "every_attention_on_card": on_card,
        "seconds": card.seconds,
        "math_seconds": math.seconds,
        "ok": comparison["all_tokens_equal"] and on_card,
    }


def batch_part(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, prompts: Sequence[str], progress: Progress
) -> dict[str, Any]:
    """Prompts of unlike lengths in one batch on a paged cache, and each of them alone on a dense one."""
    layers = model.config.num_hidden_layers
    ids = [chat_ids(tokenizer, prompt) for prompt in prompts]
    runs = 1 + len(ids)
    running = progress.add_task(f"{NAME}: a batch on pages", total=layers * BATCH_TOKENS * runs)
    with counted(model, progress, running) as use:
        together, logits = cached.generate(model, ids, BATCH_TOKENS, PAGE_SIZE)
        alone = [cached.generate(model, [one], BATCH_TOKENS) for one in ids]
    equal = [bool(one.equal(tokens[0])) for one, (tokens, _) in zip(together, alone, strict=True)]
    differences = [float((one - other[0]).abs().max()) for one, (_, other) in zip(logits, alone, strict=True)]
    on_card = use.attention_calls == layers * BATCH_TOKENS * runs and use.idle_calls == 0
    return {
        "model": NAME,
        "layers": layers,
        "prompts": list(prompts),
        "prompt_tokens": [len(one) for one in ids],
        "page_size": PAGE_SIZE,
        "texts": [_answer(tokenizer, tokens.tolist()) for tokens in together],
        "equal": equal,
        "largest_logit_difference": max(differences),
        **dataclasses.asdict(use),
        "every_attention_on_card": on_card,
        "ok": all(equal) and on_card,
    }


def chat_ids(tokenizer: PreTrainedTokenizerBase, prompt: str) -> Tensor:
    """(tokens,) of a message, up to where the answer begins."""
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    return inputs["input_ids"][0]


def _answer(tokenizer: PreTrainedTokenizerBase, tokens: list[int]) -> str:
    """Up to where the model ends it; the steps go on beyond."""
    end = tokens.index(tokenizer.eos_token_id) if tokenizer.eos_token_id in tokens else len(tokens)
    return tokenizer.decode(tokens[:end])
