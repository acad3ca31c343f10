"""One training run: text, batches and steps that follow from the seed alone."""

import contextlib
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from traininglib.attention import AttentionCalls
from traininglib.gpt import Gpt, GptConfig

__all__ = ["Run", "Schedule", "Text", "standard_library", "train"]

# fp16 has nothing below 6e-8, and a gradient of a mean over 1024 bytes is small: the loss is scaled, as under
# a GradScaler, which would only look for this number.
LOSS_SCALE = 1024.0


@dataclass(frozen=True)
class Text:
    """Bytes to learn from, and others to be judged by.

    Attributes:
        learned: (n,), uint8.
        held_out: (m,), uint8.
    """

    learned: Tensor
    held_out: Tensor

    def loss_without_context(self) -> float:
        """What the frequencies of the learned bytes make of the held-out ones, in nats a byte."""
        counts = torch.bincount(self.learned.int(), minlength=256) + 1
        return cross_entropy(counts.log()[None].expand(len(self.held_out), -1), self.held_out.long()).item()


@dataclass(frozen=True)
class Schedule:
    """How long and with what.

    Attributes:
        steps: of the optimizer.
        batch: windows of the text in a step.
        judged: windows of the held-out text that give the final loss; a multiple of batch.
        learning_rate: at its highest; the first tenth of the steps warms up to it, the others cool down by a
            cosine, so that the last steps do not add noise of their own.
    """

    steps: int = 150
    batch: int = 4
    judged: int = 32
    learning_rate: float = 2e-3


@dataclass(frozen=True)
class Run:
    """What came of it.

    Attributes:
        attention: "kernels" or "math".
        seed: of the weights and of the batches.
        losses: of each step, in nats a byte.
        final_loss: of the held-out text after the last step.
        calls: of attention ops, by name, see AttentionCalls.
    """

    attention: str
    seed: int
    losses: list[float]
    final_loss: float
    calls: dict[str, int]


def standard_library(most_bytes: int = 1 << 20) -> Text:
    """The sources of this Python's standard library in alphabetical order; the last tenth is held out."""
    folder = Path(sysconfig.get_path("stdlib"))
    data = b"".join(file.read_bytes() for file in sorted(folder.glob("*.py")))[:most_bytes]
    text = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    cut = len(text) * 9 // 10
    return Text(text[:cut], text[cut:])


def train(
    attention: str,
    where: contextlib.AbstractContextManager[None],
    seed: int,
    text: Text,
    config: GptConfig,
    schedule: Schedule,
    device: str,
    done: Callable[[], None] = lambda: None,
) -> Run:
    """Trains by AdamW from one seed.

    Args:
        attention: the run's name.
        where: what computes scaled_dot_product_attention while it is entered.
        seed: of the weights and of the batches.
        text: to learn and to be judged by.
        config: of the model.
        schedule: of the training.
        device: "cpu" (the simulated card) or "cuda".
        done: called after each step.
    """
    torch.manual_seed(seed)
    model = Gpt(config).to(device)
    batches = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), schedule.learning_rate, betas=(0.9, 0.95))
    rate = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, schedule.learning_rate, schedule.steps, pct_start=0.1, cycle_momentum=False
    )
    losses = []
    with where, AttentionCalls() as calls:
        for _ in range(schedule.steps):
            starts = torch.randint(len(text.learned) - config.context, (schedule.batch,), generator=batches)
            loss = _loss(model, _windows(text.learned, starts, config.context).to(device))
            optimizer.zero_grad()
            (loss * LOSS_SCALE).backward()
            for parameter in model.parameters():
                assert parameter.grad is not None
                parameter.grad /= LOSS_SCALE
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rate.step()
            losses.append(loss.item())
            done()
        final = _judge(model, text.held_out, config.context, schedule, device)
    return Run(attention, seed, losses, final, dict(calls.counts))


def _judge(model: Gpt, text: Tensor, context: int, schedule: Schedule, device: str) -> float:
    starts = torch.linspace(0, len(text) - context - 1, schedule.judged).long()
    with torch.no_grad():
        losses = [
            _loss(model, _windows(text, some, context).to(device)).item()
            for some in starts.split(schedule.batch)
        ]
    return sum(losses) / len(losses)


def _windows(text: Tensor, starts: Tensor, context: int) -> Tensor:
    """(windows, context + 1), int64."""
    return text[starts[:, None] + torch.arange(context + 1)].long()


def _loss(model: Gpt, windows: Tensor) -> Tensor:
    return cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())
