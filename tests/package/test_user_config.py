"""The user's configuration: measured clocks change the choice of kernels, and nothing else stops a call."""

import itertools
import warnings

import pytest
import torch

import flashattn_rocm._C as _C
from flashattn_rocm import explain_dispatch, flash_attn_func
from flashattn_rocm.tuning import user_config
from flashattn_rocm.tuning.user_config import VARIABLE, offer_tuning, read_tuning, user_config_file

_LARGE = {"head_dim": 128, "seqlen_q": 8192, "heads": 64, "arch": "gfx906", "compute_units": 60}
_KEYS = ("head_dim", "block_m", "block_n", "waves", "p_keys", "kv", "operands", "rescale", "access", "scores")


@pytest.fixture(autouse=True)
def forget(monkeypatch, tmp_path):
    """The table of every test is read anew, and that of the next one too."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    offer_tuning()
    yield
    monkeypatch.undo()
    offer_tuning()


def _row(kernel, clocks="{ fixed = 1, step = 1, step_full = 1 }", **changes):
    keys = {key: kernel[key] for key in _KEYS} | changes
    lines = [f"{key} = {value!r}" for key, value in keys.items()]
    return "\n".join(["[[fwd]]", *lines, f"clocks = {clocks}", 'why = "a test"', ""])


def _write(text, arch="gfx906"):
    file = user_config_file(arch)
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def _slowest():
    name = explain_dispatch(**_LARGE)[-1].kernel
    offer_tuning()
    return next(row for row in _C.fwd_kernels() if row["name"] == name)


def _bf16(kernel):
    return kernel["name"].replace("_f16_", "_bf16_")


def test_measured_clocks_choose_the_kernel():
    slowest = _slowest()
    _write(_row(slowest))
    best = explain_dispatch(**_LARGE)[0]
    assert (best.kernel, best.fixed, best.step, best.step_full) == (slowest["name"], 1, 1, 1)
    assert explain_dispatch(**_LARGE | {"arch": "gfx90a"})[0].kernel != slowest["name"]
    assert explain_dispatch(**_LARGE, dtype=torch.bfloat16)[0].kernel == _bf16(slowest)


def test_it_is_read_once_and_not_before_a_forward(monkeypatch):
    asked = []
    monkeypatch.setattr(user_config, "read_tuning", lambda arch: asked.append(arch) or [])
    offer_tuning()
    assert asked == []
    q = torch.zeros(1, 4, 1, 32, dtype=torch.float16)
    flash_attn_func(q, q, q)
    flash_attn_func(q, q, q)
    assert asked == ["gfx906"]


def test_the_order_decides_between_equal_estimates():
    names = [choice.kernel for choice in explain_dispatch(**_LARGE) if "elements" not in choice.kernel][:3]
    rows = [row for row in _C.fwd_kernels() if row["name"] in names]
    # No query rows beyond one, one key: every tile takes one workgroup and one step.
    problem = _LARGE | {"seqlen_q": 1, "seqlen_k": 1, "heads": 1}
    for order in itertools.permutations(rows):
        _write("".join(map(_row, order)))
        offer_tuning()
        assert [choice.kernel for choice in explain_dispatch(**problem)][:3] == [row["name"] for row in order]


def test_rows_of_other_kernels_are_named_once_and_ignored():
    slowest = _slowest()
    file = _write(_row(slowest) + _row(slowest, block_m=16))
    with pytest.warns(UserWarning, match="are for kernels that this build does not have") as caught:
        assert explain_dispatch(**_LARGE)[0].kernel == slowest["name"]
    assert len(caught) == 1
    assert f"1 of 2 rows in {file}" in str(caught[0].message)
    assert "configs/" in str(caught[0].message)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[fwd]", "Expected"),
        ("fwd = 3", r"no rows \[\[fwd\]\]"),
        ("", r"no rows \[\[fwd\]\]"),
        ("[[fwd]]\nhead_dim = 128", "a row has no block_m"),
        (None, "clocks='fast' must have fixed, step, step_full"),
        (b"\xff\xfe", "utf-8"),
    ],
)
def test_a_corrupt_file_is_named_and_ignored(text, reason):
    shipped = explain_dispatch(**_LARGE)
    slowest = _slowest()
    file = _write("")
    if isinstance(text, bytes):
        file.write_bytes(text)
    else:
        file.write_text(_row(slowest, clocks="'fast'") if text is None else text)
    offer_tuning()
    with pytest.warns(UserWarning, match=reason) as caught:
        assert explain_dispatch(**_LARGE) == shipped
    assert f"{file} is ignored" in str(caught[0].message)


def test_the_variable_names_another_file_or_none(monkeypatch, tmp_path):
    slowest = _slowest()
    _write(_row(slowest))
    monkeypatch.setenv(VARIABLE, "off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_tuning("gfx906") == []
    other = tmp_path / "other.toml"
    other.write_text(_row(slowest, clocks="{ fixed = 2, step = 3, step_full = 4 }"))
    monkeypatch.setenv(VARIABLE, str(other))
    assert read_tuning("gfx906") == [(slowest["name"], 2, 3, 4), (_bf16(slowest), 2, 3, 4)]
    monkeypatch.setenv(VARIABLE, str(tmp_path / "missing.toml"))
    with pytest.warns(UserWarning, match=r"missing\.toml is ignored"):
        assert read_tuning("gfx906") == []


def test_without_a_file_nothing_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_tuning("gfx906") == []
