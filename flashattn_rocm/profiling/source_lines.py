"""From an offset in a code object's .text to the source line, where it was compiled with line info (-g)."""

import struct
from bisect import bisect_right
from io import BytesIO
from pathlib import Path, PurePosixPath

_ARCH = "gfx906"
_BUNDLE_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"


class SourceLines:
    """The line table of one code object."""

    def __init__(self, starts: list[int], lines: list[str | None]) -> None:
        """Keeps a table: `starts` are ascending offsets in .text; the line None ends a sequence."""
        self._starts = starts
        self._lines = lines

    def __getitem__(self, text_offset: int) -> str | None:
        """E.g. "saxpy.hip:10"; None where the table says nothing."""
        index = bisect_right(self._starts, text_offset) - 1
        return self._lines[index] if index >= 0 else None


def read_source_lines(code_object: Path) -> SourceLines | None:
    """Reads the line table.

    Args:
        code_object: an ELF file, or an uncompressed offload bundle with one for gfx906.

    Returns:
        None where there is none.

    Raises:
        ImportError: pyelftools is not installed; says how to install it.
    """
    try:
        from elftools.common.exceptions import DWARFError, ELFError
        from elftools.elf.elffile import ELFFile
    except ImportError as error:
        raise ImportError(
            "source lines need pyelftools, which is not installed: pip install 'flashattn-rocm[profile]'"
        ) from error
    entries: list[tuple[int, bool, str | None]] = []
    try:
        elf = ELFFile(BytesIO(_unbundled(code_object.read_bytes())))
        text = elf.get_section_by_name(".text")
        if text is None or not elf.has_dwarf_info():
            return None
        dwarf = elf.get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            if program is None:
                continue
            names = [_name(entry.name) for entry in program["file_entry"]]
            # Files count from 1 before DWARF 5.
            first = 0 if program["version"] >= 5 else 1
            for state in (entry.state for entry in program.get_entries()):
                if state is None:
                    continue
                line = None if state.end_sequence else f"{names[state.file - first]}:{state.line}"
                # A sequence that ends where another begins must not hide it: ends sort first.
                entries.append((state.address - text["sh_addr"], line is not None, line))
    except (DWARFError, ELFError, struct.error):
        return None
    entries.sort(key=lambda entry: entry[:2])
    return (
        SourceLines([start for start, _, _ in entries], [line for _, _, line in entries]) if entries else None
    )


def _unbundled(data: bytes) -> bytes:
    """The code object for the simulated card in an offload bundle; anything else as it is."""
    if not data.startswith(_BUNDLE_MAGIC):
        return data
    (count,) = struct.unpack_from("<Q", data, len(_BUNDLE_MAGIC))
    at = len(_BUNDLE_MAGIC) + 8
    for _ in range(count):
        offset, size, name_bytes = struct.unpack_from("<QQQ", data, at)
        name = data[at + 24 : at + 24 + name_bytes].decode(errors="replace")
        if _ARCH in name.split("--")[-1]:
            return data[offset : offset + size]
        at += 24 + name_bytes
    return b""


def _name(raw: bytes) -> str:
    return PurePosixPath(raw.decode(errors="replace")).name
