"""Builds what pyproject.toml cannot say: code objects, the torch extension and the simulator.

Nothing here is imported or searched for before build_ext runs, so that pip's metadata step works without
torch, a compiler or a GPU.
"""

import os
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).resolve().parent / "scripts"))

from buildlib.errors import BuildError
from buildlib.extension import build_extension, extension_placeholder, torch_hip_version
from buildlib.paths import PACKAGE
from buildlib.requirements import ensure_build_requirements


class BuildAll(build_ext):
    """build_ext that makes lib/kernels.*, _C and, for a torch without ROCm, lib/sim."""

    def run(self) -> None:
        """Builds into the package's folder for an editable install, else below build/."""
        in_place = self.inplace or self.editable_mode
        lib = (PACKAGE if in_place else Path(self.build_lib).absolute() / PACKAGE.name) / "lib"
        try:
            hip_version = torch_hip_version()
            ensure_build_requirements()
            from buildlib.decode_kernels import build_decode_kernels
            from buildlib.kernels import build_kernels
            from buildlib.simulator import build_simulator

            build_kernels(lib)
            build_decode_kernels(lib)
            build_extension(self, hip_version)
            if not hip_version or os.environ.get("FLASHATTN_ROCM_BUILD_SIM") == "1":
                build_simulator(lib)
        except BuildError as error:
            sys.exit(f"\n{error}")


setup(ext_modules=[extension_placeholder()], cmdclass={"build_ext": BuildAll})
