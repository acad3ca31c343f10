"""The raw bytes of hipDeviceProp_t beside hip-python's view of it, with every field set by hip-python.

Prints for each scalar field the offset at which hip-python keeps it: the field is set to a number that
occurs nowhere else, which is then searched in the struct's bytes.
"""

import ctypes
import json

from hip import hip

MARK = 0x5A5A1234
properties = hip.hipDeviceProp_t()
size = properties.c_sizeof()
offsets = {}
for name in hip.hipDeviceProp_t.PROPERTIES():
    if not isinstance(getattr(properties, name), int):
        continue
    setattr(properties, name, MARK)
    raw = ctypes.string_at(int(properties), size)
    offsets[name] = raw.find(MARK.to_bytes(4, "little"))
    setattr(properties, name, 0)
print(json.dumps({"size": size, "offsets": offsets}))
