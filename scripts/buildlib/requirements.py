"""Python packages that the build itself imports."""

import importlib
import importlib.util
import subprocess
import sys

from buildlib.errors import BuildError
from buildlib.paths import BUILD

# Import name -> requirement; [build-system] of pyproject.toml lists the same.
BUILD_REQUIREMENTS = {
    "setuptools": "setuptools>=70.1",
    "pydantic": "pydantic>=2",
    "elftools": "pyelftools>=0.29",
    "msgpack": "msgpack>=1",
}
if sys.version_info < (3, 11):
    BUILD_REQUIREMENTS["tomli"] = "tomli>=2"


def ensure_build_requirements() -> None:
    """Makes the packages importable; installs missing ones into the build tree.

    `pip install --no-build-isolation .` installs no build requirements, and a ROCm image has not all of
    them. They go below build/, not into the environment, where nobody asked for them.

    Raises:
        BuildError: pip could not install them.
    """
    target = BUILD / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if target.is_dir() and str(target) not in sys.path:
        sys.path.append(str(target))
    missing = [req for name, req in BUILD_REQUIREMENTS.items() if importlib.util.find_spec(name) is None]
    if not missing:
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(target), *missing]
    if subprocess.run(command).returncode != 0:
        raise BuildError(
            f"The build needs {' and '.join(missing)}, and pip could not fetch them: "
            f"install them with `pip install {' '.join(repr(req) for req in missing)}` and build again."
        )
    sys.path.append(str(target))
    importlib.invalidate_caches()
