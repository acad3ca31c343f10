"""The kernels by the oldest clang: they compile, and compute what clang 19's do.

apt-get install clang-16 lld-16
.venv/bin/python -m pytest -m long tests/scripts/test_older_clang.py
"""

import shutil

import pytest
import torch

from buildlib import kernels, toolchain
from buildlib.bundle import make_bundle
from buildlib.code_object import check_resources
from buildlib.generate import write_instances
from buildlib.tile_config import load_config
from tests.kit.package_copy import PackageCopy

ARCH = "gfx906"
OLDEST = "clang++-16"

CALLS = """
import torch
from flashattn_rocm import flash_attn_func
from flashattn_rocm.accuracy import measure_accuracy

for dtype in (torch.float16, torch.bfloat16):
    for head_dim in (32, 40, 64, 80, 96, 128, 160, 256, 512, 41):
        q, k, v = (torch.randn(1, n, 2, head_dim).to(dtype) for n in (150, 170, 170))
        for options in ({}, {"alibi_slopes": torch.zeros(2)}):
            out, lse, _ = flash_attn_func(q, k, v, causal=True, return_attn_probs=True, **options)
            violations = measure_accuracy(q, k, v, out, lse, causal=True).violations()
            assert not violations, (dtype, head_dim, options, violations)
for dtype, bound in ((torch.float16, 1e-2), (torch.bfloat16, 8e-2), (torch.float32, 2e-5)):
    for head_dim in (64, 128, 256, 512, 41):
        q, k, v = (torch.randn(1, n, 2, head_dim).to(dtype).requires_grad_() for n in (70, 90, 90))
        out = flash_attn_func(q, k, v, causal=True)
        want = torch.nn.functional.scaled_dot_product_attention(
            *(x.double().transpose(1, 2) for x in (q, k, v)), attn_mask=torch.ones(70, 90).tril(20).bool()
        ).transpose(1, 2)
        gradients = [torch.autograd.grad(x.double().square().sum(), (q, k, v)) for x in (out, want)]
        for name, have, expected in zip("qkv", *gradients, strict=True):
            error = (have.double() - expected.double()).norm() / expected.double().norm()
            assert error < bound, (dtype, head_dim, "d" + name, error)
print("all right")
"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which(OLDEST) is None, reason=f"{OLDEST} is not installed"),
    pytest.mark.skipif(torch.version.hip is not None, reason="runs on the simulated gfx906"),
]


def test_kernels_by_the_oldest_clang(tmp_path, monkeypatch):
    monkeypatch.setenv("CLANG", OLDEST)
    monkeypatch.delenv("HIPCC", raising=False)
    toolchain.find_device_compiler.cache_clear()
    try:
        config = load_config((ARCH,))
        older = toolchain.is_older(toolchain.find_device_compiler())
        table = [*config.fwd_kernels(), *config.bwd_kernels()]
        source = write_instances(tmp_path, table, attn_probs=True)
        built = kernels.compile_kernels(ARCH, source, tmp_path)
    finally:
        toolchain.find_device_compiler.cache_clear()
    lds = {name: found.lds_bytes for name, found in built.resources.items()}
    check_resources(ARCH, table, built.resources, lds, older)
    package = tmp_path / "package"
    package.mkdir()
    copy = PackageCopy(package)
    copy.replace_kernels(make_bundle({ARCH: built.file.read_bytes()}))
    done = copy.run(CALLS)
    assert done.stdout.strip() == "all right", done.stderr
