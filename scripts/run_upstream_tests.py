#!/usr/bin/env python3
"""Runs upstream's own tests of flash-attn, unchanged, on these kernels.

    scripts/run_upstream_tests.py flash-attention/tests/test_flash_attn.py --per-test 8 --max-seqlen 256

The file is not part of this project: take it from https://github.com/Dao-AILab/flash-attention (it also wants
the package einops). It has half a million cases and hard-codes ``device="cuda"``, so this command

* imports the ``flash_attn`` of shim/, unless one is installed;
* sends its tensors to another device (``cpu``, the simulated card, unless torch has a card);
* runs a sample of each test function's cases, drawn by a seed, of no longer sequences than asked for.

What the kernels refuse with NotImplementedError counts as "not served", neither passed nor failed. The exit
status is pytest's: 0 if no case failed.
"""

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

ROOT = Path(__file__).resolve().parents[1]


class OtherDevice(TorchFunctionMode):
    """Reads every "cuda" in a call of torch as another device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.cuda:
            return args[0].to(self.device)
        moved = {name: self._moved(value) for name, value in (kwargs or {}).items()}
        return func(*map(self._moved, args), **moved)

    def _moved(self, value: Any) -> Any:
        names_cuda = isinstance(value, (str, torch.device)) and str(value).split(":")[0] == "cuda"
        return self.device if names_cuda else value


def pretend_to_be_a_card() -> None:
    """What the file asks torch.cuda about: a gfx906 is capability (9, 0); 16 GiB spare the longest cases."""
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    torch.cuda.get_device_properties = lambda *_: SimpleNamespace(total_memory=16 * 2**30)
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.empty_cache = lambda: None


class Sampler:
    """The pytest plugin that draws the cases and counts what became of them."""

    def __init__(self, per_test: int, max_seqlen: int, seed: int) -> None:
        self.per_test, self.max_seqlen, self.seed = per_test, max_seqlen, seed
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
        """Keeps the sample; each test function has its own, whatever else the file holds."""
        by_test: dict[str, list[pytest.Function]] = defaultdict(list)
        for item in items:
            if self._longest(item) <= self.max_seqlen:
                by_test[item.originalname].append(item)
        items[:] = [
            item
            for name, cases in by_test.items()
            for item in random.Random(f"{self.seed} {name}").sample(cases, min(self.per_test, len(cases)))
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Function, call: pytest.CallInfo
    ) -> Generator[None, Any, Any]:
        """Counts, and takes a refusal for what it is."""
        report = yield
        if call.excinfo is not None and call.excinfo.errisinstance(NotImplementedError):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), 0, f"not served: {call.excinfo.value}")
            self.outcomes[item.originalname]["not served"] += 1
        elif call.when == "call" or report.outcome != "passed":
            self.outcomes[item.originalname][report.outcome] += 1
        return report

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints a line for each test function, and one for all."""
        kinds = ("passed", "failed", "skipped", "not served")
        terminalreporter.section("cases")
        rows = [*self.outcomes.items(), ("total", sum(self.outcomes.values(), Counter()))]
        for name, outcomes in rows:
            counts = ", ".join(f"{outcomes[kind]} {kind}" for kind in kinds)
            terminalreporter.write_line(f"{name}: {counts}")

    @staticmethod
    def _longest(item: pytest.Function) -> int:
        parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
        return max(
            (int(value or 0) for name, value in parameters.items() if name.startswith("seqlen")), default=0
        )


def main() -> int:
    """Parses the arguments and runs pytest; returns its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="upstream's tests/test_flash_attn.py")
    parser.add_argument("--per-test", type=int, default=8, help="cases of each test function (8)")
    parser.add_argument("--max-seqlen", type=int, default=256, help="longest sequence of a case (256)")
    parser.add_argument("--seed", type=int, default=0, help="another seed draws other cases (0)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("-k", dest="expression", default="", help="only the tests that match, as in pytest")
    arguments = parser.parse_args()
    if not arguments.file.is_file():
        parser.error(f"{arguments.file} is no file")
    try:
        import flash_attn
    except ModuleNotFoundError:
        sys.path.insert(0, str(ROOT / "shim"))
        import flash_attn
    print(f"flash_attn {flash_attn.__version__} from {Path(flash_attn.__file__).parent}", flush=True)
    if arguments.device != "cuda":
        pretend_to_be_a_card()
    sampler = Sampler(arguments.per_test, arguments.max_seqlen, arguments.seed)
    options = ["-q", "-rf", "-p", "no:cacheprovider", "--rootdir", str(arguments.file.resolve().parent)]
    if arguments.expression:
        options += ["-k", arguments.expression]
    # Not this project's settings: the file has marks and imports of its own.
    options += ["-c", "/dev/null", str(arguments.file)]
    with OtherDevice(arguments.device):
        return int(pytest.main(options, plugins=[sampler]))


if __name__ == "__main__":
    sys.exit(main())
