"""A packed argument buffer has the size that the kernel's metadata says."""

import pytest

from tests.kit.asm import Kernel, assemble
from tests.kit.hip import HipError, Module, simulator


def launch(size: int) -> None:
    """Runs a kernel of 24 bytes of arguments with a buffer of `size`."""
    module = Module(simulator(), assemble([Kernel("nothing", "")]))
    simulator().launch(module.function("nothing"), bytes(size))


@pytest.mark.parametrize("size", [8, 16, 23, 33, 40])
def test_wrong_size(size: int) -> None:
    with pytest.raises(HipError) as caught:
        launch(size)
    assert caught.value.name == "hipErrorInvalidValue"
    assert caught.value.fault == (
        f"hipModuleLaunchKernel: kernel nothing: the argument buffer has {size} bytes, the arguments have "
        "24; allowed: 24 to 32, or the kernarg segment's 24"
    )


@pytest.mark.parametrize("size", [24, 32])
def test_exact_size_and_padding_of_a_struct(size: int) -> None:
    launch(size)
