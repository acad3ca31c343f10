"""The documentation: it builds without a warning, and names what there is."""

import re
import subprocess
import sys

import pytest

import flashattn_rocm
from buildlib.paths import ROOT

pytest.importorskip("sphinx")
pytest.importorskip("myst_parser")


def build(out, change=""):
    """Builds into a folder, after a change to the settings of scripts/build_docs.py."""
    code = f"import sys; sys.argv = ['build_docs.py', '--out', {str(out)!r}]\n"
    code += f"import build_docs\n{change}\nsys.exit(build_docs.main())"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'scripts')!r})\n{code}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_builds_without_a_warning_and_holds_the_api(tmp_path):
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    pages = {str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("*.html")}
    assert {
        "index.html",
        "docs/install.html",
        "docs/troubleshooting.html",
        "examples/README.html",
    } <= pages.keys()
    anchors = set(re.findall(r'id="([\w.]+)"', "".join(pages.values())))
    for name in set(flashattn_rocm.__all__) - {"__version__"}:
        assert any(anchor.endswith(f".{name}") for anchor in anchors), f"{name} is in no page of docs/api"


def test_every_op_is_in_the_api():
    schemas = (ROOT / "csrc/ops/library.cpp").read_text()
    ops = re.findall(r'm\.def\(\s*"(\w+)\(', schemas)
    assert {"fwd", "bwd", "decode"} < set(ops)
    listed = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/api/torch.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(ops)


def test_a_broken_link_is_an_error(tmp_path):
    break_a_link = (
        "stage = build_docs.stage\n"
        "def with_broken_link(folder):\n"
        "    stage(folder)\n"
        "    (folder / 'docs/numerics.md').write_text('# Numerics\\n\\n[gone](nowhere.md)\\n')\n"
        "    return folder\n"
        "build_docs.stage = with_broken_link"
    )
    done = build(tmp_path, break_a_link)
    assert done.returncode != 0
    assert "nowhere.md" in done.stderr


def test_commands_of_the_troubleshooting_page_exist():
    text = (ROOT / "docs/troubleshooting.md").read_text()
    from flashattn_rocm.__main__ import _parser

    parser = _parser()
    for arguments in re.findall(r"`flashattn-rocm ([^`]+)`", text):
        parser.parse_args(arguments.split())
    variables = set(re.findall(r"FLASHATTN_ROCM_\w+", text))
    sources = "".join(
        file.read_text()
        for folder in ("flashattn_rocm", "csrc/ops", "csrc/runtime", "setup.py")
        for file in ([ROOT / folder] if folder.endswith(".py") else (ROOT / folder).rglob("*.*p*"))
        if file.suffix in (".py", ".cpp", ".h")
    )
    assert all(variable in sources for variable in variables)
