"""The support matrix: a cell says yes only if it ran and is right."""

import re
from pathlib import Path

import pytest
import torch

import flashattn_rocm
from flashattn_rocm.manifest import read_manifest
from flashattn_rocm.verify import features, matrix
from flashattn_rocm.verify.case import Case
from flashattn_rocm.verify.features import FEATURES
from flashattn_rocm.verify.judge import violation
from tests.kit.device import DEVICE

PAGE = Path(__file__).resolve().parents[2] / "docs/support-matrix.md"
HALF = (torch.float16,)


def run(feature, head_dims=(40,), dtypes=HALF):
    return matrix.run_matrix(str(DEVICE), [feature], head_dims, dtypes)


def test_served_combinations():
    cells = matrix.run_matrix(
        str(DEVICE), ["causal", "boolean mask", "packed sequences"], (40,), (torch.float16, torch.bfloat16)
    )
    assert [(cell.feature, cell.dtype, cell.state, cell.reason) for cell in cells] == [
        (feature, dtype, "yes", "")
        for dtype in ("float16", "bfloat16")
        for feature in ("causal", "boolean mask", "packed sequences")
    ]


def test_a_refusal_is_a_hole_with_its_error():
    (cell,) = run("no mask", head_dims=(513,))
    assert cell.state == "no"
    assert "513" in cell.reason


@pytest.mark.parametrize("feature", FEATURES)
def test_each_feature_finds_a_wrong_result(feature, monkeypatch):
    """The same call, whose result is then spoiled in one place."""

    def spoil(case):
        compared = FEATURES[feature](case)
        compared[0].got.view(-1)[5] += 0.5
        return compared

    (right,) = run(feature)
    if right.state == "no":
        pytest.skip(f"not served: {right.reason}")
    monkeypatch.setattr(matrix, "FEATURES", {feature: spoil})
    (wrong,) = run(feature)
    assert (right.state, wrong.state) == ("yes", "wrong")
    assert "off by" in wrong.reason


WITHOUT = {
    "causal": {"causal": True},
    "sliding window": {"window_size": (13, 5)},
    "softcap": {"softcap": 1.5},
    "sinks": {"sinks": None},
    "additive bias": {"attn_bias": None},
    "boolean mask": {"attn_bias": None},
    "ALiBi": {"alibi_slopes": None},
}


@pytest.mark.parametrize("feature", WITHOUT)
def test_an_ignored_argument_is_wrong(feature, monkeypatch):
    """A kernel that does not look at the feature's argument must not pass for one that does."""
    import flashattn_rocm.verify.case as module

    real = module.flash_attn_func

    def ignores(q, k, v, **options):
        return real(q, k, v, **{name: x for name, x in options.items() if name not in WITHOUT[feature]})

    monkeypatch.setattr(module, "flash_attn_func", ignores)
    (cell,) = run(feature)
    assert cell.state == "wrong"


def test_nothing_compared_is_not_right(monkeypatch):
    monkeypatch.setattr(matrix, "FEATURES", {"nothing": lambda case: []})
    assert run("nothing")[0].state == "wrong"


def test_a_crash_is_no_hole(monkeypatch):
    def crash(case):
        raise RuntimeError("hipModuleLaunchKernel failed")

    monkeypatch.setattr(matrix, "FEATURES", {"crash": crash})
    cell = run("crash")[0]
    assert (cell.state, cell.reason) == ("wrong", "hipModuleLaunchKernel failed")


def test_dropout_is_judged_by_what_was_dropped(monkeypatch):
    """With a stand-in that drops by itself; a wrong scale, and a wrong rate, are found."""
    case = Case(torch.float32, 16, "cpu")

    def stand_in(q, k, v, dropout_p, return_attn_probs, scale=1.0, rate=0.2):
        keep = torch.rand(2, 2, q.shape[1], k.shape[1], generator=torch.Generator().manual_seed(1)) >= rate
        out, lse = features.attention_by_definition(q, k, v, keep=keep, dropout_p=dropout_p)
        return out.float() * scale, lse.float(), torch.where(keep, 1.0, -1.0)

    monkeypatch.setattr(features, "flash_attn_func", stand_in)
    assert not any(map(violation, FEATURES["dropout"](case)))
    monkeypatch.setattr(features, "flash_attn_func", lambda *a, **k: stand_in(*a, **k, scale=0.9))
    assert any(map(violation, FEATURES["dropout"](case)))
    monkeypatch.setattr(features, "flash_attn_func", lambda *a, **k: stand_in(*a, **k, rate=0.4))
    with pytest.raises(ArithmeticError, match=r"are dropped, not 0\.2"):
        FEATURES["dropout"](case)


@pytest.mark.parametrize("feature", ["KV cache", "paged KV cache"])
def test_caches_are_judged_by_their_lengths(feature, monkeypatch):
    """With a stand-in from the definition; one that sees a key too many is found."""
    case = Case(torch.float32, 16, "cpu")

    def stand_in(q, k, v, new_k=None, new_v=None, *, cache_seqlens, block_table=None, causal=False, more=0):
        if block_table is not None:
            k, v = (t[block_table.long()].flatten(1, 2) for t in (k, v))
        rows = []
        for row, length in enumerate(cache_seqlens.tolist()):
            keys, values = k[row].clone(), v[row].clone()
            if new_k is not None:
                keys[length], values[length] = new_k[row, 0], new_v[row, 0]
                length += 1
            seen = length + more
            rows.append(features.attention_by_definition(q[[row]], keys[None, :seen], values[None, :seen])[0])
        return torch.cat(rows).float()

    monkeypatch.setattr(flashattn_rocm, "flash_attn_with_kvcache", stand_in, raising=False)
    assert not any(map(violation, FEATURES[feature](case)))
    monkeypatch.setattr(
        flashattn_rocm, "flash_attn_with_kvcache", lambda *a, **k: stand_in(*a, **k, more=-1), raising=False
    )
    assert any(map(violation, FEATURES[feature](case)))


def test_page():
    cells = [
        matrix.Cell("causal", 64, "float16", "yes"),
        matrix.Cell("causal", 80, "float16", "no", "D80 | refused"),
        matrix.Cell("causal", 64, "bfloat16", "wrong", "out is off by 1"),
        matrix.Cell("causal", 80, "bfloat16", "no", "D80 | refused"),
    ]
    page = matrix.matrix_page(cells, "cpu")
    assert "## float16\n\n| | 64 | 80 |\n|---|---|---|\n| causal | yes | no (1) |" in page
    assert "| causal | **wrong** (2) | no (1) |" in page
    assert "1. D80 \\| refused\n2. wrong: causal at 64: out is off by 1" in page


def test_the_committed_page_is_of_today():
    """It lists every kernel, feature and head dim; `make support-matrix` writes it anew."""
    page = PAGE.read_text()
    kernels = {
        kernel["name"]
        for family in ("kernels", "decode")
        for kernel in read_manifest(family)["archs"]["gfx906"]
    }
    listed = set(re.findall(r"^\* `(flashattn_\w+)`$", page, re.MULTILINE))
    assert listed == kernels
    sections = dict(re.findall(r"^## (\w+)\n\n((?:\|.*\n)+)", page, re.MULTILINE))
    assert list(sections) == [str(dtype).removeprefix("torch.") for dtype in matrix.DTYPES]
    for table in sections.values():
        head, _, *rows = [line.strip("| ").split("|") for line in table.splitlines()]
        assert [int(text) for text in head if text.strip()] == list(matrix.HEAD_DIMS)
        assert [row[0].strip() for row in rows] == list(FEATURES)
        for row in rows:
            assert all(re.fullmatch(r"yes|no \(\d+\)", text.strip()) for text in row[1:])
    assert "wrong" not in page
