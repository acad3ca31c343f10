"""Refuses to build where another flash-attn is installed: pip would replace it without a word."""

import sys
import sysconfig
from importlib.metadata import distributions

from setuptools import setup


def installed_flash_attn() -> str | None:
    """The version of a flash-attn that is not this package, in the environment of this interpreter."""
    # Not sys.path: pip builds with a path that hides what is installed.
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    for found in distributions(name="flash-attn", path=folders):
        if not any(line.startswith("flashattn-rocm") for line in found.requires or ()):
            return found.version
    return None


version = installed_flash_attn()
if version is not None:
    sys.exit(
        f"flash-attn {version} is installed, and this package of the same name would replace it. "
        "Run `pip uninstall flash-attn` first if you want the programs that import flash_attn to use "
        "flashattn_rocm."
    )

setup()
