"""The command that runs upstream's test file, on a small file of the same kind."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from run_upstream_tests import Sampler

ROOT = Path(__file__).resolve().parents[2]

FILE = """
import pytest
import torch
from flash_attn import flash_attn_func, flash_attn_varlen_func, flash_attn_with_kvcache
from flash_attn.bert_padding import pad_input, unpad_input
from flash_attn.flash_attn_interface import USE_TRITON_ROCM, _get_block_size_n

HAS_BACKWARD = torch.cuda.get_device_capability("cuda")[0] >= 9


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("seqlen_q,seqlen_k", [(n, n + 3) for n in range(1, 30)] + [(5, 5000)])
def test_output(seqlen_q, seqlen_k, causal):
    assert seqlen_k < 5000
    device = "cuda"
    q = torch.randn(1, seqlen_q, 2, 16, device=device, dtype=torch.float16)
    k = torch.zeros(1, seqlen_k, 2, 16, dtype=torch.float16).to(torch.device("cuda", 0)).cuda()
    out = flash_attn_func(q, k, torch.ones_like(k), causal=causal)
    assert (out == 1).all()
    torch.cuda.synchronize()


@pytest.mark.parametrize("seqlen", [4, 8])
def test_dropout(seqlen):
    q = torch.randn(1, seqlen, 2, 16, device="cuda", dtype=torch.float16)
    flash_attn_func(q, q, q, 0.17)


@pytest.mark.parametrize("seqlen", [4, 8])
def test_wrong(seqlen):
    if torch.cuda.get_device_properties("cuda").total_memory <= 16 * 2**30 and seqlen == 8:
        pytest.skip("memory")
    assert not HAS_BACKWARD


def test_alone():
    assert not USE_TRITON_ROCM
"""


def run(tmp_path, *options: str) -> tuple[subprocess.CompletedProcess, dict[str, str]]:
    file = tmp_path / "test_flash_attn.py"
    file.write_text(FILE)
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts/run_upstream_tests.py"), str(file), "--device", "cpu", *options],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
    )
    return done, dict(re.findall(r"^(\w+): (\d+ passed.*)$", done.stdout, re.M))


def test_counts_by_test(tmp_path):
    done, counts = run(tmp_path, "--per-test", "5", "--max-seqlen", "40")
    assert counts == {
        "test_output": "5 passed, 0 failed, 0 skipped, 0 not served",
        "test_dropout": "2 passed, 0 failed, 0 skipped, 0 not served",
        "test_wrong": "0 passed, 1 failed, 1 skipped, 0 not served",
        "test_alone": "1 passed, 0 failed, 0 skipped, 0 not served",
        "total": "8 passed, 1 failed, 1 skipped, 0 not served",
    }, done.stdout + done.stderr
    assert done.returncode == 1


def sample(per_test=4, max_seqlen=99, seed=0, names=("test_a", "test_b")):
    """The lengths that are drawn of 40 cases of each test."""
    items = [
        SimpleNamespace(originalname=name, callspec=SimpleNamespace(params={"seqlen_q": n, "d": 500}))
        for name in names
        for n in range(40)
    ]
    Sampler(per_test, max_seqlen, seed).pytest_collection_modifyitems(items)
    return [(item.originalname, item.callspec.params["seqlen_q"]) for item in items]


def test_sample():
    drawn = sample()
    assert [name for name, _ in drawn] == ["test_a"] * 4 + ["test_b"] * 4
    assert drawn == sample()
    assert drawn != sample(seed=1)
    assert drawn[4:] == sample(names=("test_b",))
    assert sorted(n for _, n in sample(max_seqlen=2, names=("test_a",))) == [0, 1, 2]


def test_a_file_that_is_not_there(tmp_path):
    script = str(ROOT / "scripts/run_upstream_tests.py")
    done = subprocess.run([sys.executable, script, str(tmp_path / "no.py")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no.py is no file" in done.stderr
