"""Stamps: a step is skipped while the hash of all that it depends on stays the same."""

import hashlib
from collections.abc import Iterable
from pathlib import Path


def hash_inputs(files: Iterable[Path], texts: Iterable[str]) -> str:
    """Hashes names and contents of files, and texts such as command lines and versions."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file}\0{file.stat().st_size}\0".encode())
        digest.update(file.read_bytes())
    for text in texts:
        digest.update(f"{len(text)}\0{text}".encode())
    return digest.hexdigest()


def source_files(*folders: Path) -> list[Path]:
    """All regular files below the folders."""
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


class Stamp:
    """Remembers, in one file, the hash of the inputs that the outputs were made from."""

    def __init__(self, file: Path, inputs: str, outputs: Iterable[Path]) -> None:
        self._file = file
        self._inputs = inputs
        self._outputs = tuple(outputs)

    def is_current(self) -> bool:
        """True if the outputs exist and were made from these inputs."""
        return (
            self._file.is_file()
            and self._file.read_text() == self._inputs
            and all(output.exists() for output in self._outputs)
        )

    def write(self) -> None:
        """Call it after the outputs are complete."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(self._inputs)


def write_if_changed(file: Path, text: str) -> None:
    """Keeps the modification time of a file whose text stays the same, so that ninja skips its users."""
    if file.is_file() and file.read_text() == text:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
