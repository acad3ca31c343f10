"""A language model of transformers with its attention on these kernels: two lines."""

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from flashattn_rocm.integrations.transformers import register

DEVICE = "cuda" if torch.version.hip and torch.cuda.is_available() else "cpu"
CONFIG = LlamaConfig(
    vocab_size=101,
    hidden_size=128,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    initializer_range=0.2,
    eos_token_id=None,
)


def main() -> None:
    """Generates with transformers' own attention and with these kernels."""
    register()  # once per process
    torch.manual_seed(0)
    model = LlamaForCausalLM(CONFIG).half().to(DEVICE).eval()
    # A model from disk: from_pretrained(path, dtype=torch.float16, attn_implementation="gfx906")
    prompt = torch.randint(3, 101, (1, 40), device=DEVICE)
    tokens = {}
    for attention in ("eager", "gfx906"):
        model.set_attn_implementation(attention)
        tokens[attention] = model.generate(prompt, max_new_tokens=8, do_sample=False)[0, 40:].tolist()
        print(f"{attention:7} {tokens[attention]}")
    print("same tokens" if tokens["eager"] == tokens["gfx906"] else "other tokens")


if __name__ == "__main__":
    main()
