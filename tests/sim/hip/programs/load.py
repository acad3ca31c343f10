"""Loads a file with hipModuleLoad and, unless that failed, hipModuleLoadData; as JSON."""

import ctypes
import json
import sys
from pathlib import Path

from calls import code
from hip import hip

library = ctypes.CDLL("libamdhip64.so")
library.flashattnSimLastFault.restype = ctypes.c_char_p
from_file = hip.hipModuleLoad(sys.argv[1].encode())
text = library.flashattnSimLastFault()
results = {"file": code(from_file), "text": text.decode() if text else ""}
# hipModuleLoadData is told no size: what the headers promise must exist, so zeros follow the file.
image = Path(sys.argv[1]).read_bytes() + bytes(1 << 20)
if "outside the file" not in results["text"]:
    results["data"] = code(hip.hipModuleLoadData(image))
print(json.dumps(results))
