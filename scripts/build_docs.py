"""Builds the documentation and the API reference as HTML; any warning is an error.

    python scripts/build_docs.py [--out FOLDER]

The pages are those that the repository shows: links between README.md, docs/ and others hold on both sides.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from buildlib.paths import BUILD, ROOT

_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "shim/README.md", "docs", "examples")


def main() -> int:
    """Entry point; returns Sphinx' exit status."""
    parser = argparse.ArgumentParser(description="Build the documentation.")
    parser.add_argument("--out", type=Path, default=BUILD / "docs", help="folder of index.html")
    options = parser.parse_args()
    try:
        from sphinx.cmd.build import build_main
    except ImportError:
        sys.exit("The documentation is built by Sphinx: pip install -e '.[docs]'")
    with tempfile.TemporaryDirectory() as folder:  # several builds may run at a time
        source = stage(Path(folder) / "pages")
        arguments = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(source / "docs")]
        status = build_main([*arguments, str(source), str(options.out)])
    if status == 0:
        print(f"file://{options.out.resolve()}/index.html")
    return status


def stage(folder: Path) -> Path:
    """Lays the pages out as in the repository, with docs/index.md as the root.

    Returns:
        The folder.
    """
    for page in _PAGES:
        source, target = ROOT / page, folder / page
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (folder / "docs/index.md").rename(folder / "index.md")
    return folder


if __name__ == "__main__":
    sys.exit(main())
