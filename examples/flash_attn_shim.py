"""Code that is written against flash-attn, unchanged: the package in shim/ provides `flash_attn`."""

import torch

from flash_attn import flash_attn_func, flash_attn_varlen_func

DEVICE = "cuda" if torch.version.hip and torch.cuda.is_available() else "cpu"


def main() -> None:
    """The same two sequences as a batch and packed end to end."""
    torch.manual_seed(0)
    q = torch.randn(2, 70, 8, 64, dtype=torch.float16, device=DEVICE)  # [batch, seqlen, heads, head_dim]
    k, v = torch.randn(2, 2, 70, 2, 64, dtype=torch.float16, device=DEVICE)  # 4 query heads share a KV head

    out = flash_attn_func(q, k, v, causal=True, window_size=(32, 0))

    ends = torch.tensor([0, 70, 140], dtype=torch.int32, device=DEVICE)
    packed = flash_attn_varlen_func(
        *(t.flatten(0, 1) for t in (q, k, v)), ends, ends, 70, 70, causal=True, window_size=(32, 0)
    )
    print(f"{tuple(out.shape)}, and packed {tuple(packed.shape)}")
    print(f"largest difference: {(out.flatten(0, 1) - packed).abs().max():.1e}")


if __name__ == "__main__":
    main()
