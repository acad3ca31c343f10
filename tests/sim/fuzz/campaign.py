"""Generates, compiles and compares functions by seed, and reduces those that differ."""

import copy
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.kit.hip import simulator
from tests.sim.fuzz.build import build
from tests.sim.fuzz.compare import differences, make_inputs
from tests.sim.fuzz.program import Function, Statement, make_function, unit_source

PER_UNIT = 50  # compiling one unit of 50 costs a fifth of compiling 50 units
REDUCTION_SECONDS = 90.0


@dataclass(frozen=True)
class Finding:
    """A function that differs between the simulator and the host."""

    seed: int
    level: str
    text: str
    source: str  # reduced

    def __str__(self) -> str:
        return f"seed {self.seed} at -O{self.level}: {self.text}\n{self.source}"


def _differs(function: Function, level: str, inputs_seed: int) -> str:
    """The first difference of a single function, "" if there is none or it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            unit = build(unit_source([function]), (level,), Path(folder))
        except ValueError:
            return ""
        found = differences(simulator(), unit, level, [function.name], make_inputs(inputs_seed))
    return found.get(function.name, "")


def _lists(function: Function) -> Iterator[list]:
    """Every list that can lose an element: statements, nested statements, exchanges."""

    def nested(statements: list[Statement]) -> Iterator[list]:
        yield statements
        for statement in statements:
            yield from nested(statement.body)
            yield from nested(statement.other)

    yield from function.exchanges
    for phase in function.phases:
        yield from nested(phase)


def _without(function: Function, list_number: int, first: int, count: int) -> Function | None:
    """A copy that lacks `count` elements; None when there are not so many."""
    smaller = copy.deepcopy(function)
    target = list(_lists(smaller))[list_number]
    if first + count > len(target):
        return None
    del target[first : first + count]
    return smaller


def reduce(function: Function, level: str, inputs_seed: int) -> Function:
    """Leaves out statements as long as the difference stays, within REDUCTION_SECONDS."""
    deadline = time.monotonic() + REDUCTION_SECONDS
    changed = True
    while changed:
        changed = False
        list_number = 0
        while list_number < len(list(_lists(function))):
            length = len(list(_lists(function))[list_number])
            first = length - 1
            while first >= 0:
                if time.monotonic() > deadline:
                    return function
                smaller = _without(function, list_number, first, 1)
                if smaller is not None and _differs(smaller, level, inputs_seed):
                    function, changed = smaller, True
                first -= 1
            list_number += 1
    return function


def run_unit(seeds: range, levels: Sequence[str]) -> list[Finding]:
    """Compares the functions of `seeds`, compiled together, at each -O<level>."""
    trees = {seed: make_function(seed, f"fn{seed}") for seed in seeds}
    seed_of = {tree.name: seed for seed, tree in trees.items()}
    inputs = make_inputs(seeds.start)
    with tempfile.TemporaryDirectory() as folder:
        unit = build(unit_source(list(trees.values())), levels, Path(folder))
        wrong = {level: differences(simulator(), unit, level, list(seed_of), inputs) for level in levels}
    findings = []
    for level, texts in wrong.items():
        for name, text in texts.items():
            tree = trees[seed_of[name]]
            if "no semantics" not in text:  # a missing opcode needs no smaller example
                tree = reduce(tree, level, seeds.start)
            findings.append(Finding(seed_of[name], level, text, tree.source()))
    return findings


def units(first: int, count: int) -> Iterator[range]:
    """The seeds `first`, ... in units of PER_UNIT."""
    for start in range(first, first + count, PER_UNIT):
        yield range(start, min(start + PER_UNIT, first + count))
