"""A copy of the installed package whose code objects a test may spoil."""

import os
import subprocess
import sys
from pathlib import Path

import flashattn_rocm

PACKAGE = Path(flashattn_rocm.__file__).parent


class PackageCopy:
    """Links to every file of the package, in a folder of its own.

    Attributes:
        root: what to put on the module path.
        kernels: the copy's lib/kernels.hipfb, a link to the original until a test replaces it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        package = root / PACKAGE.name
        for folder in (package, package / "lib"):
            folder.mkdir()
            source = PACKAGE / folder.relative_to(package)
            for entry in source.iterdir():
                if entry.name not in ("lib", "__pycache__"):
                    (folder / entry.name).symlink_to(entry)
        self.kernels = package / "lib" / "kernels.hipfb"

    def replace_kernels(self, content: bytes) -> None:
        self.kernels.unlink()
        self.kernels.write_bytes(content)

    def run(self, code: str) -> subprocess.CompletedProcess[str]:
        """Runs Python code in a new process that imports the copy."""
        path = os.pathsep.join([str(self.root), *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(self.root)!r})\n{code}"],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
