"""LoRA adapters (Hu et al. 2021) on linear layers of a model."""

import torch
from torch import Tensor, nn

__all__ = ["LoraLinear", "add_lora"]


class LoraLinear(nn.Module):
    """A frozen linear layer plus a trained one of low rank: y = W x + (alpha / rank) B A x.

    A and B are float32 and multiplied in the dtype of x. B starts random, not at 0 as it does for training:
    with B = 0 the gradient of A is 0, which would say nothing of it.
    """

    def __init__(self, base: nn.Linear, rank: int, alpha: float, generator: torch.Generator) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank

        def normal(rows: int, columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, columns, generator=generator) * columns**-0.5)

        self.a, self.b = normal(rank, base.in_features), normal(base.out_features, rank)

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) to (..., out_features)."""
        a, b = self.a.to(x.dtype), self.b.to(x.dtype)
        return self.base(x) + (x @ a.T @ b.T) * self.scale


def add_lora(
    model: nn.Module, names: tuple[str, ...], rank: int = 8, alpha: float = 1.0, seed: int = 0
) -> dict[str, LoraLinear]:
    """Puts adapters on all linear layers whose last name is one of these; freezes everything else.

    Returns:
        The adapters by the names of the layers.
    """
    model.requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    chosen = [name for name, _ in model.named_modules() if name.rpartition(".")[2] in names]
    adapters = {}
    for name in chosen:
        parent, _, last = name.rpartition(".")
        layer = model.get_submodule(name)
        assert isinstance(layer, nn.Linear), name
        adapters[name] = LoraLinear(layer, rank, alpha, generator)
        setattr(model.get_submodule(parent), last, adapters[name])
    return adapters
