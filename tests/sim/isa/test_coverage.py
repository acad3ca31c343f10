"""Every opcode that the simulator knows is executed by an instruction test."""

import importlib
import subprocess

from tests.kit.hip import LIBRARY
from tests.sim.exec.case import Batch

MODULES = (
    *("compare", "dpp", "lds", "modes", "packed", "salu", "sdwa", "smem", "valu", "valu_special", "vmem"),
    "gpr_index",
)
# Executed outside the snippets: by every kernel, and by the fault tests.
ELSEWHERE = {"s_endpgm", "s_trap"}
# Opcodes without a test, with the reason. This set only shrinks.
UNTESTED: dict[str, str] = {}


def simulated_opcodes() -> set[str]:
    """The simulator's own list: a line with the count, then lines of class and name."""
    tool = LIBRARY.with_name("flashattn-sim")
    done = subprocess.run([tool, "opcodes"], capture_output=True, text=True, check=True)
    count, *lines = done.stdout.splitlines()
    names = {line.split()[1] for line in lines}
    assert count == f"{len(names)} opcodes"
    return names


def opcodes_under_test() -> set[str]:
    """The opcodes that the instruction tests' snippets name."""
    found = set(ELSEWHERE)
    for module in MODULES:
        batch: Batch = importlib.import_module(f"tests.sim.exec.test_{module}").BATCH
        for cases in batch.cases().values():
            for case in cases:
                found |= case.mnemonics()
    return found


def test_every_opcode_is_executed() -> None:
    missing = simulated_opcodes() - opcodes_under_test()
    assert sorted(missing) == sorted(UNTESTED)


def test_the_list_of_untested_opcodes_is_current() -> None:
    assert not (gone := set(UNTESTED) - simulated_opcodes()), f"no longer simulated: {sorted(gone)}"
