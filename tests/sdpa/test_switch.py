"""Switching the override on and off, what it falls back from, and who sees it."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
import torch.nn.attention
from torch.nn.functional import scaled_dot_product_attention

import flashattn_rocm
from flashattn_rocm.torch_sdpa.aten_flash import KERNELS
from tests.kit.cases import randn

ROOT = Path(__file__).resolve().parents[2]


def inputs(dtype=torch.float16):
    return tuple(randn(1, 2, 5, 16, seed=s, dtype=dtype) for s in range(3))


def registrations() -> dict[str, str]:
    names = ["scaled_dot_product_attention", *(name for name in KERNELS if hasattr(torch.ops.aten, name))]
    return {name: torch._C._dispatch_dump(f"aten::{name}") for name in names}


def test_removal_restores_everything():
    before, want = registrations(), scaled_dot_product_attention(*inputs())
    flashattn_rocm.enable_sdpa()
    assert all(before[name] != now for name, now in registrations().items())
    flashattn_rocm.enable_sdpa(fallback=False)  # a second time replaces the first
    flashattn_rocm.disable_sdpa()
    flashattn_rocm.disable_sdpa()
    assert registrations() == before
    assert torch.equal(scaled_dot_product_attention(*inputs()), want)
    with pytest.raises(RuntimeError, match=r"call flashattn_rocm\.enable_sdpa"):
        flashattn_rocm.sdpa_counts()


def test_a_block_ends_with_what_was_before():
    flashattn_rocm.enable_sdpa()
    scaled_dot_product_attention(*inputs())
    outer = flashattn_rocm.sdpa_counts()
    with flashattn_rocm.sdpa() as inner:
        scaled_dot_product_attention(*inputs())
    scaled_dot_product_attention(*inputs())
    assert flashattn_rocm.sdpa_counts() is outer
    assert (inner.served, outer.served) == (1, 2)


def test_fallback_is_counted_by_reason_and_warned_of_once():
    q, k, v = inputs(torch.float64)
    want = scaled_dot_product_attention(q, k, v)
    flashattn_rocm.enable_sdpa()
    with pytest.warns(RuntimeWarning, match=r"falls back to torch: .*data type"):
        assert torch.equal(scaled_dot_product_attention(q, k, v), want)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scaled_dot_product_attention(q[..., :3, :], k, v)
    counts = flashattn_rocm.sdpa_counts()
    assert list(counts.fallbacks.values()) == [2]
    assert counts.served == 0
    assert "left to torch: 2" in str(counts)


def test_without_fallback_the_reason_is_an_error():
    with flashattn_rocm.sdpa(fallback=False), pytest.raises(TypeError, match="data type"):
        scaled_dot_product_attention(*inputs(torch.float64))


def test_a_rate_that_drops_everything_falls_back():
    with pytest.warns(RuntimeWarning, match="dropout_p must be in"), flashattn_rocm.sdpa() as counts:
        scaled_dot_product_attention(*inputs(), dropout_p=1.0)
    assert ["dropout_p must be in" in reason for reason in counts.fallbacks] == [True]


@pytest.mark.parametrize(
    ("shapes", "options"),
    [
        (((1, 2, 5, 16), (1, 2, 5, 8), (1, 2, 5, 16)), {}),
        (((1, 3, 5, 16), (1, 2, 5, 16), (1, 2, 5, 16)), {}),
        (((1, 4, 5, 16), (1, 2, 5, 16), (1, 2, 5, 16)), {}),  # groups, which were not asked for
        (((2, 2, 5, 16), (3, 2, 5, 16), (3, 2, 5, 16)), {}),
        (((16,), (5, 16), (5, 16)), {}),
        (((1, 2, 5, 16),) * 3, {"attn_mask": torch.ones(4, 5, dtype=torch.bool)}),
    ],
)
def test_wrong_arguments_raise_what_torch_raises(shapes, options):
    tensors = [randn(*shape, seed=1) for shape in shapes]
    with pytest.raises(RuntimeError) as stock:
        scaled_dot_product_attention(*tensors, **options)
    with flashattn_rocm.sdpa() as counts, pytest.raises(RuntimeError) as ours:
        scaled_dot_product_attention(*tensors, **options)
    assert str(ours.value).splitlines()[0] == str(stock.value).splitlines()[0]
    assert not counts.fallbacks
    assert not counts.served


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_grad_modes(mode):
    with flashattn_rocm.sdpa(fallback=False) as counts, mode():
        scaled_dot_product_attention(*inputs())
    assert counts.served == 1


def test_autocast_casts_first():
    q, k, v = inputs(torch.float32)
    with flashattn_rocm.sdpa(fallback=False) as counts, torch.autocast(q.device.type, torch.float16):
        out = scaled_dot_product_attention(q, k, v)
    assert out.dtype == torch.float16
    assert counts.served == 1


@pytest.mark.parametrize("options", [{}, {"is_causal": True}])
def test_compiled_without_a_graph_break(options):
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, backend="aot_eager")
    def compiled(q, k, v):
        return scaled_dot_product_attention(q, k[:, :, :3], v[:, :, :3], **options) + 1

    q, k, v = inputs()
    want = scaled_dot_product_attention(q, k[:, :, :3], v[:, :, :3], **options) + 1
    with flashattn_rocm.sdpa(fallback=False) as counts:
        got = compiled(q, k, v)
    assert counts.served >= 1  # one for each pass of the tracing
    assert (got - want).abs().max() < 3e-3
    torch._dynamo.reset()


@pytest.mark.skipif(
    not hasattr(torch.nn.attention, "restore_flash_attention_impl"),
    reason="torch before 2.11 has no such switch",
)
def test_torchs_own_switch():
    before = registrations()
    assert "GFX906" in torch.nn.attention.list_flash_attention_impls()
    assert torch.nn.attention.current_flash_attention_impl() is None
    torch.nn.attention.activate_flash_attention_impl("GFX906")
    scaled_dot_product_attention(*inputs())
    assert flashattn_rocm.sdpa_counts().served == 1
    torch.nn.attention.restore_flash_attention_impl()
    assert registrations() == before


PROGRAM = """
import sys, torch
from torch.nn.functional import scaled_dot_product_attention
q = torch.zeros(1, 2, 5, 16, dtype=torch.float16)
scaled_dot_product_attention(q, q, q)
print("flashattn_rocm" in sys.modules and sys.modules["flashattn_rocm"].sdpa_counts().served)
"""


def run_program(tmp_path, **environment):
    """Runs a program that does not know the package, in an environment where the package is installed."""
    info = tmp_path / "entry-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: entry\nVersion: 0\n")
    lines = (ROOT / "pyproject.toml").read_text().split('[project.entry-points."torch.backends"]\n')[1]
    (info / "entry_points.txt").write_text(
        "[torch.backends]\n" + lines.splitlines()[0].replace('"', "") + "\n"
    )
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(("value", "printed"), [(None, "False"), ("0", "False"), ("1", "1"), ("strict", "1")])
def test_environment_variable(tmp_path, value, printed):
    done = run_program(tmp_path, **({} if value is None else {"FLASHATTN_ROCM_SDPA": value}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == printed


def test_environment_variable_of_another_value(tmp_path):
    done = run_program(tmp_path, FLASHATTN_ROCM_SDPA="yes")
    assert done.returncode != 0
    assert "FLASHATTN_ROCM_SDPA=yes is unknown; allowed are 0, 1 and strict" in done.stderr


@pytest.mark.parametrize("options", [{}, {"is_causal": True}], ids=str)
def test_float32_is_served_as_float32(options):
    q, k, v = inputs(torch.float32)
    want = scaled_dot_product_attention(q, k, v, **options)
    with flashattn_rocm.sdpa(fallback=False) as counts:
        out = scaled_dot_product_attention(q, k, v, **options)
    assert counts.served == 1
    assert (out - want).abs().max() < 1e-6
