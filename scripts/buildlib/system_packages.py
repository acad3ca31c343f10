"""The distribution's packages that hold what a build needs, and how to ask for them."""

import functools
import re
import shutil
import subprocess
from pathlib import Path

# 19 first: with it the kernels' register counts and the simulator's opcodes are tested. Then the newest.
LLVM_VERSIONS = (19, 21, 20, 18, 17, 16)

# Each component's packages, the first that apt offers is taken; {v} is the LLVM version. Device libraries
# are bitcode, which a compiler reads if its own LLVM is not older.
_CANDIDATES = {
    "compiler": ("clang-{v}",),
    "linker": ("lld-{v}",),
    "offload-bundler": ("clang-tools-{v}", "clang-{v}"),
    "llvm": ("llvm-{v}-dev",),
    "device-libs": (
        "rocm-device-libs",
        "amd-device-libs-{v}",
        "rocm-device-libs-{v}",
        "rocm-device-libs-19",
        "rocm-device-libs-18",
        "rocm-device-libs-17",
    ),
    "hip-headers": ("libamdhip64-dev",),
    "host-compiler": ("g++",),
    "cmake": ("cmake",),
    "ninja": ("ninja-build",),
    "python-venv": ("python3-venv",),
    "python-headers": ("python3-dev",),
}


def package_for(component: str, llvm_version: int | None = None) -> str | None:
    """Returns the package of this distribution that holds a component; None if it offers none.

    Args:
        component: a key of the table above.
        llvm_version: the installed compiler's; by default the one that would be installed.
    """
    version = llvm_version or _offered_llvm()
    names = [name.format(v=version) for name in _CANDIDATES[component] if version or "{v}" not in name]
    offered = _offered(tuple(names))
    return next((name for name in names if name in offered), None)


def how_to_install(component: str, llvm_version: int | None = None) -> str:
    """Returns the end of a sentence: the command that installs a component here."""
    package = package_for(component, llvm_version)
    if package:
        return f"install it with `sudo apt-get install {package}`"
    fallback = _CANDIDATES[component][0].format(v=llvm_version or LLVM_VERSIONS[0])
    return (
        f"{_distribution()} offers no package for it (Debian 12 has {fallback}): "
        "install LLVM 17 or newer from https://apt.llvm.org, or build in a ROCm image"
    )


def _offered_llvm() -> int | None:
    """The LLVM version to install: one whose clang, lld and headers apt offers."""
    for version in LLVM_VERSIONS:
        wanted = (f"clang-{version}", f"lld-{version}", f"llvm-{version}-dev")
        if len(_offered(wanted)) == len(wanted):
            return version
    return None


@functools.cache
def _offered(names: tuple[str, ...]) -> frozenset[str]:
    """Those of the names that apt could install."""
    if shutil.which("apt-cache") is None:
        return frozenset()
    shown = subprocess.run(["apt-cache", "policy", *names], capture_output=True, text=True).stdout
    found = re.findall(r"^(\S+):\n(?: .*\n)*?  Candidate: (.*)$", shown, re.MULTILINE)
    return frozenset(name for name, candidate in found if candidate != "(none)")


def _distribution() -> str:
    release = Path("/etc/os-release")
    if not release.is_file():
        return "This system"
    match = re.search(r'^PRETTY_NAME="?([^"\n]*)', release.read_text(), re.MULTILINE)
    return match.group(1) if match else "This system"
