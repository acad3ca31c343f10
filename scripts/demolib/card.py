"""Where a transformers model computes its attention, and what the card did for it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress
    from transformers import PreTrainedModel

__all__ = ["CardUse", "attention_on_torch_math", "counted"]


@dataclasses.dataclass
class CardUse:
    """What the simulated card did for one model."""

    attention_calls: int = 0
    wave_instructions: int = 0
    idle_calls: int = 0  # attention calls during which the card executed nothing


@contextlib.contextmanager
def counted(model: PreTrainedModel, progress: Progress, task: Any) -> Iterator[CardUse]:
    """Counts, per attention call, what the card executed."""
    from flashattn_rocm import simulated_instructions

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
