"""Every vector opcode against its reference, in each encoding and with each kind of modifier."""

from functools import partial

import pytest

from tests.sim.exec.build import build_case
from tests.sim.exec.case import Batch, Case
from tests.sim.exec.ops.op import Op
from tests.sim.exec.ops.vop1 import VOP1
from tests.sim.exec.ops.vop2 import VOP2
from tests.sim.exec.ops.vop3 import VOP3
from tests.sim.exec.variants import variants_of

OPS = [*VOP1, *VOP2, *VOP3]


def cases_of(op: Op) -> list[Case]:
    return [build_case(op, variant, seed=str(i)) for i, variant in enumerate(variants_of(op))]


BATCH = Batch({op.name: partial(cases_of, op) for op in OPS})


@pytest.mark.parametrize("name", BATCH.groups)
def test_vector_opcode(name: str) -> None:
    BATCH.check(name)
