"""Timing a launch does not change what it computes."""

import struct

import numpy as np
import pytest
from numpy.typing import NDArray

from flashattn_rocm.sim.validation_kernels import compile_kernels
from tests.kit.hip import Buffer, Module, simulator

FLOATS = 60 * 4 * 4096


def copy(*, timed: bool) -> NDArray[np.uint8]:
    """What `copy_dwordx4` leaves in its output: 240 workgroups, one iteration."""
    hip = simulator()
    source = np.random.default_rng(7).standard_normal(FLOATS).astype(np.float32)
    launch = hip.launch_timed if timed else hip.launch
    with (
        Module(hip, compile_kernels()) as module,
        Buffer(hip, source.nbytes) as given,
        Buffer(hip, source.nbytes) as taken,
    ):
        given.write(source)
        taken.write(np.zeros_like(source))
        arguments = struct.pack("<QQI", given.address, taken.address, 1)
        launch(module.function("copy_dwordx4"), arguments, grid=(240, 1, 1), block=(256, 1, 1))
        result = taken.read()
    assert np.array_equal(result, source.view(np.uint8))
    return result


@pytest.mark.parametrize("timed", [False, True])
def test_a_copy_is_a_copy(timed: bool) -> None:
    copy(timed=timed)


def test_timed_and_untimed_results_are_identical() -> None:
    assert np.array_equal(copy(timed=True), copy(timed=False))
