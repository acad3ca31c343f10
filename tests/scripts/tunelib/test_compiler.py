"""What the compiled tiles of a run depend on."""

import shutil

import pytest

from buildlib import kernels
from buildlib.paths import CSRC
from tunelib.compiler import TileCompiler


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the device's sources, which the build then takes."""
    for folder in ("attention", "core", "gcn", "kernels"):
        shutil.copytree(CSRC / folder, tmp_path / "csrc" / folder)
    monkeypatch.setattr(kernels, "CSRC", tmp_path / "csrc")
    return tmp_path / "csrc"


@pytest.mark.parametrize(
    ("changed", "of_forward", "of_backward"),
    [
        ("attention/shape.h", True, True),
        ("attention/bwd_side.h", False, True),
        ("kernels/fwd.h", True, False),
    ],
)
def test_a_journal_is_of_the_sources_that_its_pass_includes(
    sources, tmp_path, changed, of_forward, of_backward
):
    compiler = TileCompiler(tmp_path / "cache")
    before = {name: compiler.inputs("gfx906", name) for name in ("fwd", "bwd")}
    assert before == {name: compiler.inputs("gfx906", name) for name in ("fwd", "bwd")}
    (sources / changed).write_text((sources / changed).read_text() + "// another comment\n")
    after = {name: compiler.inputs("gfx906", name) for name in ("fwd", "bwd")}
    assert {name: after[name] != before[name] for name in before} == {"fwd": of_forward, "bwd": of_backward}
