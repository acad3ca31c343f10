"""The same random functions on the simulated card and on the host give the same bits."""

import pytest

from tests.sim.fuzz.campaign import run_unit, units

LEVELS = ("1", "3")
QUICK = list(units(0, 200))
LONG = list(units(200, 5000))


def check(seeds: range) -> None:
    findings = run_unit(seeds, LEVELS)
    if findings:
        pytest.fail("\n\n".join(map(str, findings)), pytrace=False)


@pytest.mark.parametrize("seeds", QUICK, ids=lambda seeds: f"from {seeds.start}")
def test_functions_agree(seeds: range) -> None:
    check(seeds)


@pytest.mark.long
@pytest.mark.parametrize("seeds", LONG, ids=lambda seeds: f"from {seeds.start}")
def test_many_functions_agree(seeds: range) -> None:
    check(seeds)
