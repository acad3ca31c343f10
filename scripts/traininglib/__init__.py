"""Parts of scripts/train_gpt.py and scripts/lora_step.py: training on these kernels beside torch's math."""
