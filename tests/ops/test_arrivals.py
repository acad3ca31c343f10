"""Which wave comes last (csrc/gcn/arrivals.h), in a kernel of its own."""

import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from buildlib.kernels import compile_command
from tests.kit.hip import Buffer, Module, simulator

GROUPS, WAVES, LANES = 7, 2, 64
LAUNCH = (1 << 56) - 1  # the largest name
SOURCE = """
#include "gcn/arrivals.h"

// Each wave leaves a number a lane; the last of those with the same number in their workgroups adds all.
extern "C" __global__ void FLASHATTN_WORKGROUP(128)
    meet(uint64_t* words, uint64_t launch, uint32_t groups, uint32_t* left, uint32_t* sums, uint32_t* last) {
  const int wave = flashattn::gcn::wave_id(), lane = flashattn::gcn::lane_id();
  left[(blockIdx.x * 2 + wave) * 64 + lane] = 1000 * blockIdx.x + threadIdx.x;
  if (!flashattn::gcn::comes_last(words + wave, launch, groups)) return;
  uint32_t sum = 0;
  for (uint32_t group = 0; group < groups; ++group) sum += left[(group * 2 + wave) * 64 + lane];
  sums[wave * 64 + lane] = sum;
  if (lane == 0) ++last[wave];
}
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    file = tmp_path_factory.mktemp("arrivals") / "meet.hip"
    file.write_text(SOURCE)
    return file


@pytest.fixture(scope="module")
def module(source):
    code = source.with_suffix(".co")
    subprocess.run([*compile_command("gfx906", source), "-o", code], check=True)
    with Module(simulator(), code) as loaded:
        yield loaded


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("word", [0, 3, (LAUNCH - 1) << 8 | GROUPS - 1, (1 << 64) - 1 >> 8, GROUPS])
def test_one_wave_is_last_whatever_memory_held_and_when_replayed(module, word, seed, monkeypatch):
    monkeypatch.setenv("FLASHATTN_SIM_SEED", str(seed))
    hip = simulator()
    sizes = (8 * WAVES, 4 * GROUPS * WAVES * LANES, 4 * WAVES * LANES, 4 * WAVES)
    words, left, sums, last = buffers = [Buffer(hip, size) for size in sizes]
    words.write(np.full(WAVES, word, np.uint64))
    last.write(np.zeros(WAVES, np.uint32))
    arguments = struct.pack(
        "<QQIxxxxQQQ", words.address, LAUNCH, GROUPS, left.address, sums.address, last.address
    )
    want = np.arange(WAVES * LANES) * GROUPS + 1000 * sum(range(GROUPS))
    for launch in range(1, 4):  # as a graph does: the same name again
        left.write(np.zeros(GROUPS * WAVES * LANES, np.uint32))
        hip.launch(module.function("meet"), arguments, grid=(GROUPS, 1, 1), block=(WAVES * LANES, 1, 1))
        assert last.read().view(np.uint32).tolist() == [launch] * WAVES
        np.testing.assert_array_equal(sums.read().view(np.uint32), want)
    for buffer in buffers:
        buffer.free()


def test_what_was_written_before_is_seen_after(source: Path):
    """The instructions that LLVM's memory model for gfx90x asks for; the simulator keeps the order anyway."""
    text = subprocess.run(
        [*compile_command("gfx906", source), "-S", "-o", "-"], check=True, capture_output=True, text=True
    ).stdout
    kernel = text[text.index("\nmeet:") : text.index("s_endpgm")]
    between = re.search(
        r"global_store_dword (.*?)global_atomic_cmpswap_x2(.*)global_load_dword ", kernel, re.DOTALL
    )
    assert between
    assert re.search(r"s_waitcnt .*vmcnt\(0\)", between[1])
    assert re.search(r"s_waitcnt vmcnt\(0\).*\n(?:.*\n)*?\s+buffer_wbinvl1", between[2])
