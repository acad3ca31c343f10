"""Code that calls xformers' memory_efficient_attention: one import changes; xformers need not be there."""

import torch
from torch.nn.functional import scaled_dot_product_attention

from flashattn_rocm.integrations.xformers import memory_efficient_attention

DEVICE = "cuda" if torch.version.hip and torch.cuda.is_available() else "cpu"


def main() -> None:
    """Attention with a bias, as xformers takes it, against torch's."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 2, 60, 4, 80, dtype=torch.float16, device=DEVICE)  # [batch, seqlen, heads, dim]
    bias = torch.randn(2, 4, 60, 60, dtype=torch.float16, device=DEVICE)
    out = memory_efficient_attention(q, k, v, attn_bias=bias, scale=0.1)
    split = [t.transpose(1, 2) for t in (q, k, v)]
    want = scaled_dot_product_attention(split[0], split[1], split[2], attn_mask=bias, scale=0.1)
    print(f"largest difference: {(out - want.transpose(1, 2)).abs().max():.1e}")


if __name__ == "__main__":
    main()
