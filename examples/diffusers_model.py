"""A UNet of diffusers, unchanged: its "native" backend calls scaled_dot_product_attention."""

import torch
from diffusers import UNet2DConditionModel

import flashattn_rocm

DEVICE = "cuda" if torch.version.hip and torch.cuda.is_available() else "cpu"


def main() -> None:
    """One denoising step with torch's attention and with these kernels; head dim 40, as SD 1.5 has it."""
    torch.manual_seed(0)
    model = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(32, 80),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        cross_attention_dim=48,
        attention_head_dim=2,  # of heads, in this class
        norm_num_groups=8,
    )
    model = model.half().to(DEVICE).eval()
    latents = torch.randn(1, 4, 8, 8, dtype=torch.float16, device=DEVICE)
    text = torch.randn(1, 9, 48, dtype=torch.float16, device=DEVICE)
    with torch.no_grad():
        want = model(latents, 7, text).sample
        with flashattn_rocm.sdpa() as counts:  # a whole pipeline(prompt) goes here
            got = model(latents, 7, text).sample
    print(counts)
    print(f"largest difference: {(got - want).abs().max():.1e}")


if __name__ == "__main__":
    main()
