"""The command on this machine, in fresh processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import flashattn_rocm

ROOT = Path(__file__).resolve().parents[2]
SIMULATOR = Path(flashattn_rocm.__file__).parent / "lib/sim"

pytestmark = pytest.mark.skipif(torch.version.hip is not None, reason="expects a machine without a card")


def doctor(*arguments: str, module="flashattn_rocm_doctor", python=(), **environment):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, *python, "-m", *module.split(), *arguments],
        env={**os.environ, "PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stderr == ""
    return done


def findings(done):
    report = json.loads(done.stdout)
    assert report["ok"] == (done.returncode == 0)
    return {finding["check"]: finding for finding in report["findings"]}


@pytest.mark.parametrize("module", ["flashattn_rocm_doctor", "flashattn_rocm doctor"])
def test_simulated_card(module):
    done = doctor(module=module)
    assert done.returncode == 0, done.stdout
    assert "float16 on the simulated card agrees with float64" in done.stdout
    assert "0 fail" in done.stdout


def test_a_runtime_with_a_card():
    """The simulator as the machine's HIP runtime."""
    found = findings(doctor("--json", LD_LIBRARY_PATH=str(SIMULATOR)))
    assert found["runtime"]["status"] == "ok"
    assert found["runtime"]["found"].endswith("1 card")
    assert found["code objects"]["status"] == "ok"
    assert found["memory"]["status"] == "ok"
    assert "GiB free" in found["memory"]["found"]


def test_a_card_is_asked_for_and_there_is_none():
    done = doctor("--json", FLASHATTN_ROCM_BACKEND="hip")
    assert done.returncode == 1
    found = findings(done)
    assert found["driver"]["status"] == "fail"
    assert found["launch"]["status"] == "fail"


def test_without_torch(tmp_path):
    import markdown_it
    import mdurl
    import pygments
    import rich

    for module in (rich, markdown_it, mdurl, pygments):
        folder = Path(module.__file__).parent
        (tmp_path / folder.name).symlink_to(folder)
    path = os.pathsep.join([str(tmp_path), str(ROOT)])
    done = doctor("--json", python=["-S"], PYTHONPATH=path)
    assert done.returncode == 1
    found = findings(done)
    assert found["torch"]["found"] == "torch is not installed"
    assert found["kernels"]["status"] == "ok"
    assert "launch" not in found


def test_console_script_without_torch(tmp_path):
    """What needs torch says so, and names the doctor."""
    code = "import sys; sys.argv = ['flashattn-rocm', 'info']\n"
    code += "from flashattn_rocm_doctor.console import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "No module named 'torch'; `flashattn-rocm doctor` says what to do" in done.stderr
