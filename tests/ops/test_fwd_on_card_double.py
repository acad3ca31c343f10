"""What the op does for cuda tensors of a ROCm torch: device, stream, arguments, and no host memory.

Runs against doubles of libamdhip64 and libtorch_hip, since no machine that only simulates has either.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.kit.package_copy import PACKAGE

DRIVER = Path(__file__).parents[1] / "kit" / "card" / "drive.py"

pytestmark = [
    pytest.mark.long,  # compiles the op a second time
    pytest.mark.skipif(torch.version.hip is not None, reason="a ROCm torch has the real thing"),
    pytest.mark.skipif(shutil.which("ninja") is None, reason="torch.utils.cpp_extension needs ninja"),
]


@pytest.fixture(scope="module")
def reached_the_card(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card")
    command = [sys.executable, DRIVER, folder, PACKAGE / "lib" / "kernels.hipfb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("index", "device"), [(0, 1), (1, 0), (2, 1)])
def test_device_and_stream(reached_the_card, index, device):
    call = reached_the_card[index]
    assert call["launches"] == 1
    assert call["device"] == device
    assert call["stream"] == 0x1000 + device  # torch's current stream there
    assert call["out_device"] == call["lse_device"] == f"cuda:{device}"
    assert call["device_after"] == 0  # the caller's current device comes back
    assert call["host_registrations"] == 0


def test_kernels_are_loaded_once_for_each_device(reached_the_card):
    assert [call["load_device"] for call in reached_the_card[:3]] == [1, 0, 0]


def test_arguments(reached_the_card):
    call = reached_the_card[0]
    assert call["data_match"]
    assert call["lse_match"]
    assert call["sizes"] == [3, 70, 9, 4, 2]
    assert call["strides"] == [70 * 4 * 64, 4 * 64, 64]
    assert call["scale"] == 0.5
    assert call["kernel"].startswith("flashattn_fwd_f16_d64_m")
    assert call["grid"][1:] == [3, 1]


def test_devices_must_agree(reached_the_card):
    texts = reached_the_card[3:]
    assert texts[0] == "k must be on the device of q, cuda:0; it is on cuda:1"
    assert texts[1] == "k must be on the device of q, cuda:0; it is on cpu"
    assert texts[2] == "v must be on the device of q, cuda:0; it is on cpu"
