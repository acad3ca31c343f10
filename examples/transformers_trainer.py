"""Fine-tuning by transformers' Trainer with attention on these kernels, forward and backward."""

import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PrinterCallback, Trainer, TrainingArguments

from flashattn_rocm.integrations.transformers import register

DEVICE = "cuda" if torch.version.hip and torch.cuda.is_available() else "cpu"
CONFIG = LlamaConfig(
    vocab_size=256,
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=64,
    eos_token_id=None,
)
TOKENS = 96


def text_of_this_file() -> list[dict[str, torch.Tensor]]:
    """Windows of bytes, as the Trainer takes them."""
    data = torch.frombuffer(bytearray(Path(__file__).read_bytes()), dtype=torch.uint8).long()
    return [{"input_ids": window, "labels": window} for window in data.unfold(0, TOKENS, TOKENS)]


def train(attention: str, config: LlamaConfig, steps: int) -> list[float]:
    """The loss of each step, under bf16 autocast, which is what attention then gets."""
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    # A model from disk: from_pretrained(path, attn_implementation="gfx906")
    model.set_attn_implementation(attention)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=steps,
            per_device_train_batch_size=2,
            learning_rate=1e-3,
            bf16=True,
            use_cpu=DEVICE == "cpu",
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(model, arguments, train_dataset=text_of_this_file())
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def main() -> None:
    """Trains with transformers' own attention and with these kernels."""
    register()  # once per process
    losses = {attention: train(attention, CONFIG, steps=4) for attention in ("eager", "gfx906")}
    for attention, each in losses.items():
        print(f"{attention:7} {', '.join(f'{loss:.4f}' for loss in each)}")
    apart = [abs(one - other) for one, other in zip(losses["eager"], losses["gfx906"], strict=True)]
    print(f"largest difference: {max(apart):.1e}")


if __name__ == "__main__":
    main()
