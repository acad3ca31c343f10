"""Loads code objects that were cut or have wrong bytes, and makes calls that cannot work; as JSON.

Arguments: a code object, an offload bundle with it, a folder for the damaged files.
"""

import ctypes
import json
import random
import sys
from pathlib import Path

IMAGE, BUNDLE = (Path(name).read_bytes() for name in sys.argv[1:3])
FOLDER = Path(sys.argv[3])
CUTS, DAMAGES = 200, 600
HEADERS = 512  # bytes
library = ctypes.CDLL("libamdhip64.so")
library.hipGetErrorName.restype = library.flashattnSimLastFault.restype = ctypes.c_char_p


def outcome(status: int) -> dict[str, str]:
    text = library.flashattnSimLastFault() if status else b""
    return {"code": library.hipGetErrorName(status).decode(), "text": (text or b"").decode(errors="replace")}


def load(image: bytes, name: str) -> dict[str, str]:
    """Loads a file, and unloads it if that worked."""
    file = FOLDER / name
    file.write_bytes(image)
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    result = outcome(library.hipModuleLoad(ctypes.byref(module), str(file).encode()))
    if result["code"] == "hipSuccess":
        library.hipModuleGetFunction(ctypes.byref(function), module, b"vadd")
        library.hipModuleUnload(module)
    return result


def damaged(whole: bytes, seed: int) -> bytes:
    """Up to 8 wrong bytes; every second time among the headers."""
    dice, image = random.Random(seed), bytearray(whole)
    for _ in range(dice.randint(1, 8)):
        image[dice.randrange(HEADERS if seed % 2 else len(image))] = dice.randrange(256)
    return bytes(image)


results = {
    "cut": [load(IMAGE[: len(IMAGE) * n // CUTS], "cut.co") for n in range(CUTS)],
    "damaged": [load(damaged(IMAGE, seed), "damaged.co") for seed in range(DAMAGES)],
    "damaged bundle": [load(damaged(BUNDLE, seed), "damaged.bundle") for seed in range(DAMAGES)],
    "compressed": load(b"CCOB" + bytes(range(256)), "compressed"),
}
module, function = ctypes.c_void_p(), ctypes.c_void_p()
library.hipModuleLoadData(ctypes.byref(module), IMAGE)
results["no such kernel"] = outcome(library.hipModuleGetFunction(ctypes.byref(function), module, b"vsub"))
for name in ("hipGraphCreate", "hipMallocManaged", "hipBindTexture", "hipModuleGetTexRef"):
    results[name] = outcome(getattr(library, name)(None, None, None, None))
results["whole"] = load(IMAGE, "whole.co")
print(json.dumps(results))
