"""The clang offload bundle: one file that hipModuleLoadData picks the card's code object from."""

import struct
from collections.abc import Mapping

_MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
_ALIGNMENT = 4096  # as clang writes it; the loader maps a code object by pages
_HOST_ID = "host-x86_64-unknown-linux--"


def make_bundle(code_objects: Mapping[str, bytes]) -> bytes:
    """Bundles code objects by arch, uncompressed, behind the empty host entry that HIP expects."""
    entries = {_HOST_ID: b""}
    entries.update({f"hipv4-amdgcn-amd-amdhsa--{arch}": data for arch, data in code_objects.items()})
    header_bytes = len(_MAGIC) + 8 + sum(3 * 8 + len(name) for name in entries)

    header = bytearray(_MAGIC + struct.pack("<Q", len(entries)))
    body = bytearray()
    for name, data in entries.items():
        offset = _aligned(header_bytes + len(body))
        body += bytes(offset - header_bytes - len(body)) + data
        header += struct.pack("<QQQ", offset, len(data), len(name)) + name.encode()
    return bytes(header + body)


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
