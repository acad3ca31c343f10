"""Memory that is gone is named as such."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.kit.asm import Kernel, assemble
from tests.kit.hip import Buffer, HipError, Module, simulator

# Stores to the address in the kernel's first argument.
STORE = """s_load_dwordx2 s[8:9], s[4:5], 0x0
    v_mov_b32_e32 v1, 0
    s_waitcnt lgkmcnt(0)
    global_store_dword v1, v0, s[8:9]"""


@pytest.fixture
def module():
    module = Module(simulator(), assemble([Kernel("store", STORE)]))
    yield module
    module.unload()


def launch(module: Module, address: int) -> None:
    simulator().launch(module.function("store"), struct.pack("<QQQ", address, 0, 0))


def test_use_after_free(module: Module) -> None:
    buffer = Buffer(simulator(), 1000)
    address = buffer.address
    launch(module, address)
    buffer.free()
    # Memory that came later does not hide what was there.
    with Buffer(simulator(), 1000), pytest.raises(HipError) as caught:
        launch(module, address)
    expected = f"4-byte write at {address:#x} is outside what the card may touch; it is inside "
    assert expected + f"[{address:#x}, {address + 1000:#x}) (hipMalloc, 1000 bytes), freed by hipFree" in (
        caught.value.fault
    )
    assert "instruction: global_store_dword v1, v0, s[8:9]" in caught.value.fault
    assert "wave 0, lane 0" in caught.value.fault


def test_pinned_memory_after_free(module: Module) -> None:
    hip = simulator()
    with Buffer(hip, 8) as pointer:
        hip.call("hipHostMalloc", pointer.address, 64, 0)
        address = int(pointer.read().view(np.uint64)[0])
    launch(module, address)
    hip.call("hipHostFree", address)
    with pytest.raises(HipError, match=r"\(hipHostMalloc, 64 bytes\), freed by hipHostFree"):
        launch(module, address)


def test_tensor_after_its_registration(module: Module) -> None:
    hip, array = simulator(), np.zeros(64, np.uint32)
    hip.register_read_only(array)
    hip.unregister(array)
    with pytest.raises(HipError, match="which is no longer registered"):
        launch(module, array.ctypes.data)
    assert not array.any()


def test_addresses_of_many_frees_are_given_back() -> None:
    """Only the last 128 frees are remembered."""

    def address_space_after(frees: int) -> int:
        for _ in range(frees):
            Buffer(simulator(), 1 << 20).free()
        return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")

    before = address_space_after(200)
    assert address_space_after(500) - before < 50 << 20
