"""Reads what buildlib.bundle writes."""

import struct


def read_bundle(bundle: bytes) -> dict[str, bytes]:
    """The code objects of a clang offload bundle by the names of their entries, in the bundle's order."""
    assert bundle[:24] == b"__CLANG_OFFLOAD_BUNDLE__"
    (count,) = struct.unpack_from("<Q", bundle, 24)
    found, at = {}, 32
    for _ in range(count):
        offset, size, name_size = struct.unpack_from("<QQQ", bundle, at)
        name = bundle[at + 24 : at + 24 + name_size].decode()
        found[name] = bundle[offset : offset + size]
        assert offset % 4096 == 0
        at += 24 + name_size
    return found
