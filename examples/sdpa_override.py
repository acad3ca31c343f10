"""torch's scaled_dot_product_attention on these kernels, in a model that knows nothing of them.

FLASHATTN_ROCM_SDPA=1 in the environment does the same without a line of code.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import flashattn_rocm

DEVICE = "cuda" if torch.version.hip and torch.cuda.is_available() else "cpu"


class Attention(nn.Module):
    """Causal self-attention with 4 heads of 32, as many models have it."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, seqlen, 128) in and out."""
        q, k, v = (t.unflatten(-1, (4, 32)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


def main() -> None:
    """Compares the model with itself."""
    torch.manual_seed(0)
    model = Attention().half().to(DEVICE)
    x = torch.randn(2, 100, 128, dtype=torch.float16, device=DEVICE)
    with torch.no_grad():
        want = model(x)
        with flashattn_rocm.sdpa() as counts:  # or enable_sdpa() once, for the process
            got = model(x)
    print(counts)
    print(f"largest difference: {(got - want).abs().max():.1e}")


if __name__ == "__main__":
    main()
