"""The package's types as a user's mypy sees them, and the extension's stub against the extension."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

ROOT = Path(__file__).resolve().parents[2]

CONSUMER = """
from __future__ import annotations

import torch

import flashattn_rocm
from flashattn_rocm import SdpaCounts, explain_dispatch, flash_attn_func, flash_attn_varlen_func, sdpa
from flashattn_rocm.bert_padding import pad_input, unpad_input
from flashattn_rocm.integrations.xformers import memory_efficient_attention


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    out = flash_attn_func(q, k, v, 0.0, None, True, window_size=(128, 0), return_attn_probs=True)
    if isinstance(out, tuple):
        return out[0]
    return memory_efficient_attention(q, k, v, scale=0.5)


def served(q: torch.Tensor) -> int:
    counts: SdpaCounts
    with sdpa(fallback=False) as counts:
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
    return counts.served


name: str = explain_dispatch(head_dim=64, seqlen_q=10, heads=2)[0].kernel
version: str = flashattn_rocm.__version__
instructions: int = flashattn_rocm.simulated_instructions()
"""

MISUSES = {
    "flash_attn_func(q, q)": 'Missing positional argument "v"',
    "flash_attn_func(q, q, q, causal=True, causale=False)": 'Unexpected keyword argument "causale"',
    "flash_attn_func(q, q, q, window_size='no')": 'Argument "window_size"',
    "flash_attn_func(q, q, q).causal": "has no attribute",
    "explain_dispatch(head_dim='64', seqlen_q=1, heads=1)": 'Argument "head_dim"',
    "memory_efficient_attention(q, q, q, op=None, mask=None)": 'Unexpected keyword argument "mask"',
}


@pytest.fixture
def mypy(tmp_path):
    """Checks a source text strictly; returns the process."""
    # Following torch takes a minute; its names are then Any, ours are not.
    # The package is as an installed one: mypy takes its types and says nothing of its own lines.
    (tmp_path / "mypy.ini").write_text(
        "[mypy]\nstrict = True\n"
        "[mypy-flashattn_rocm.*]\nfollow_imports = silent\n"
        "[mypy-torch.*]\nfollow_imports = skip\nignore_missing_imports = True\n"
    )

    def run(source: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "consumer.py"
        file.write_text(source)
        command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"), str(file)]
        environment = {**os.environ, "MYPYPATH": str(ROOT)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    return run


def test_a_strict_consumer_is_clean(mypy):
    done = mypy(CONSUMER)
    assert done.returncode == 0, done.stdout


def test_misuse_is_found(mypy):
    lines = [
        f"def misuse_{i}(q: torch.Tensor) -> object:\n    return {code}" for i, code in enumerate(MISUSES)
    ]
    done = mypy("\n".join([CONSUMER, *lines]))
    for code, error in MISUSES.items():
        assert error in done.stdout, f"{code} is accepted: {done.stdout}"
    assert done.stdout.count("error:") == len(MISUSES), done.stdout


def test_the_stub_of_the_extension_is_complete(tmp_path):
    """Each name of the stub is in the extension, and the other way round."""
    (tmp_path / "mypy.ini").write_text("[mypy]\n")
    command = [sys.executable, "-m", "mypy.stubtest", "flashattn_rocm._C", "--concise"]
    done = subprocess.run(
        [*command, "--mypy-config-file", str(tmp_path / "mypy.ini")],
        cwd=ROOT,
        env={**os.environ, "MYPY_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
