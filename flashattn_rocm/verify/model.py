"""Layer 3: a real language model with its attention on these kernels, against the same model in float32."""

import copy
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from flashattn_rocm.accuracy import MATH_ERRORS_ALLOWED, MIN_COSINE
from flashattn_rocm.verify.outcome import Outcome
from flashattn_rocm.verify.smollm import PROMPT, load_language_model, load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel

__all__ = ["verify_model"]

_TOKENS, _QUICK_TOKENS = 8, 2
_ATTENTION = "gfx906"


def verify_model(device: str, quick: bool) -> Iterator[Outcome]:
    """Yields an outcome for the prompt's logits and one for each token that is then chosen.

    The reference is the same float16 weights computed in float32 with torch's math; allowed is twice what
    float16 with torch's math is off by.

    Args:
        device: "cpu" for the simulated card, "cuda" for a card.
        quick: fewer tokens.

    Raises:
        ImportError: transformers, or the package with the weights, is not installed.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")  # transformers' bars would cut through the report
    from flashattn_rocm.integrations.transformers import register

    tokenizer, model = load_tokenizer(), load_language_model().to(device)
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    ids = inputs["input_ids"].to(device)
    tokens = _QUICK_TOKENS if quick else _TOKENS
    exact = copy.deepcopy(model).float()
    want, chosen = _steps(exact, "sdpa", ids, tokens, None)
    by_torch, _ = _steps(model, "sdpa", ids, tokens, chosen)
    got, _ = _steps(model, register(_ATTENTION), ids, tokens, chosen)
    for step, (ours, math, reference) in enumerate(zip(got, by_torch, want, strict=True)):
        yield _outcome(step, ids.shape[1], ours, math, reference)


def _steps(
    model: "PreTrainedModel", attention: str, ids: Tensor, tokens: int, forced: Tensor | None
) -> tuple[list[Tensor], Tensor]:
    """Logits of the prompt and of each decode step, and the tokens; the best ones unless they are forced.

    Every run must see the same tokens, or their logits could not be compared.
    """
    model.set_attn_implementation(attention)
    logits, chosen = [], []
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        out = model(ids, use_cache=True)
        for step in range(tokens + 1):
            logits.append(out.logits[0].float().cpu())
            if step == tokens:
                break
            token = out.logits[:, -1:].argmax(-1) if forced is None else forced[:, step : step + 1]
            chosen.append(token)
            out = model(token, cache=out.past_key_values, use_cache=True)
    return logits, torch.cat(chosen, 1)


def _outcome(step: int, prompt: int, ours: Tensor, math: Tensor, want: Tensor) -> Outcome:
    error, torch_error = ((x - want).abs().max().item() for x in (ours, math))
    cosine = torch.nn.functional.cosine_similarity(
        ours.double().flatten(), want.double().flatten(), dim=0
    ).item()
    allowed = MATH_ERRORS_ALLOWED * torch_error
    faults = []
    if not error <= allowed:
        faults.append(f"logits are off by {error:.3f}, allowed are {allowed:.3f}")
    if not cosine >= MIN_COSINE:
        faults.append(f"cosine {cosine:.6f} < {MIN_COSINE}")
    if not torch.equal(ours[-1].argmax(), want[-1].argmax()):
        faults.append("another token is the best")
    case = f"SmolLM2-135M, {prompt} prompt tokens" if step == 0 else f"SmolLM2-135M, token {step}"
    return Outcome("model", case, error, torch_error, allowed, cosine, "; ".join(faults), prompt + step)
