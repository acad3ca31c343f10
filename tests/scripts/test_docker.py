"""The image's recipe against what it is made from; CI has no docker to build it with."""

import fnmatch
import re
import subprocess

from buildlib.archs import DEFAULT
from buildlib.paths import ROOT

_DOCKERFILE = (ROOT / "docker/Dockerfile.rocm").read_text()
_ARGUMENTS = dict(re.findall(r"^ARG (\w+)=?(.*)$", _DOCKERFILE, re.MULTILINE))


def test_archs_are_those_of_a_build_without_the_variable():
    assert _ARGUMENTS["PYTORCH_ROCM_ARCH"] == ";".join(DEFAULT)


def test_documented_arguments_exist():
    text = (ROOT / "docs/install.md").read_text()
    used = re.findall(r"--build-arg (\w+)=([\w.:/]+)", text)
    assert {"ROCM", "TORCH", "BASE", "PYTORCH_ROCM_ARCH", "MAX_JOBS"} == {name for name, _ in used}
    assert {name for name, _ in used} <= _ARGUMENTS.keys()
    releases = {value.split(".")[0] + "." + value.split(".")[1] for name, value in used if name == "ROCM"}
    assert {"6.3", "6.4"} < releases
    assert any(release.startswith("7.") for release in releases)
    for name, value in used:
        if name == "TORCH":
            assert tuple(map(int, value.split(".")[:2])) >= (2, 7)


def test_commands_of_the_image_are_in_its_context():
    """Nothing that the build reads may be ignored, and nothing that was built here may get in."""
    ignored = (ROOT / ".dockerignore").read_text().split()

    def is_ignored(path: str) -> bool:
        parts = path.split("/")
        parents = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        return any(
            fnmatch.fnmatch(each, pattern.removeprefix("**/")) for pattern in ignored for each in parents
        )

    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    needed = [path for path in tracked.stdout.splitlines() if not path.startswith(("tests/", ".ci/"))]
    assert [path for path in needed if is_ignored(path)] == []
    for built in (
        ".venv/bin/python",
        "build/kernels/x",
        "flashattn_rocm/lib/kernels.json",
        "tests/conftest.py",
    ):
        assert is_ignored(built)
    for script in re.findall(r"scripts/\w+\.py", _DOCKERFILE):
        assert (ROOT / script).is_file()


def test_the_image_ends_with_the_doctor():
    assert 'CMD ["flashattn-rocm", "doctor"]' in _DOCKERFILE
    assert "flashattn-rocm doctor" in re.search(r"^HEALTHCHECK.*$", _DOCKERFILE, re.MULTILINE).group()
