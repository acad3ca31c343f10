"""Memory calls: contents after copies and fills, and error codes for bad input; as JSON."""

import ctypes
import json

import numpy as np
from calls import check, code
from hip import hip

KIND = hip.hipMemcpyKind
HTOD, DTOH, DTOD = KIND.hipMemcpyHostToDevice, KIND.hipMemcpyDeviceToHost, KIND.hipMemcpyDeviceToDevice
results: dict[str, object] = {}

free_before, total = check(hip.hipMemGetInfo())
source = np.arange(1024, dtype=np.uint8)
back = np.zeros_like(source)
a, b = check(hip.hipMalloc(1024)), check(hip.hipMalloc(1024))
results["free_after_2048"] = free_before - check(hip.hipMemGetInfo())[0]
results["aligned"] = [int(a) % 256, int(b) % 256]


def content(pointer, size: int) -> list[int]:
    host = np.zeros(size, np.uint8)
    check(hip.hipMemcpy(host, pointer, size, DTOH))
    return host.tolist()


check(hip.hipMemcpy(a, source, 1024, HTOD))
check(hip.hipMemcpyAsync(b, a, 1024, DTOD, None))
check(hip.hipMemcpy(back, b, 1024, KIND.hipMemcpyDefault))
results["round_trip"] = bool((back == source).all())
check(hip.hipMemset(a, 0x1AB, 16))
check(hip.hipMemsetD16(int(a) + 16, 0x1234, 4))
check(hip.hipMemsetD32(int(a) + 24, 0x12345678, 2))
results["fills"] = content(a, 40)
check(hip.hipMemcpy(a, source, 1024, HTOD))
check(hip.hipMemcpy2D(int(b), 100, int(a), 64, 8, 3, DTOD))
results["rows"] = [content(int(b) + row * 100, 9) for row in range(3)]

check(hip.hipMemset2D(int(b), 100, 0xEE, 4, 2))
results["filled_rows"] = [content(int(b) + row * 100, 5) for row in range(3)]
base, size = check(hip.hipMemGetAddressRange(int(a) + 77))
results["range"] = [int(base) == int(a), size, check(hip.hipMemPtrGetInfo(int(a) + 77))]

results["codes"] = {
    "copy beyond dst": code(hip.hipMemcpy(a, np.zeros(2048, np.uint8), 1025, HTOD)),
    "copy beyond src": code(hip.hipMemcpy(np.zeros(2048, np.uint8), int(a) + 1, 1024, DTOH)),
    "copy to host as device": code(hip.hipMemcpy(back, source, 16, HTOD)),
    "copy null": code(hip.hipMemcpy(a, None, 16, HTOD)),
    "copy nothing": code(hip.hipMemcpy(a, None, 0, HTOD)),
    "copy bad stream": code(hip.hipMemcpyAsync(a, source, 16, HTOD, 0x1234)),
    "pitch": code(hip.hipMemcpy2D(int(b), 4, int(a), 64, 8, 3, DTOD)),
    "rows beyond": code(hip.hipMemcpy2D(int(b), 512, int(a), 64, 8, 4, DTOD)),
    "memset beyond": code(hip.hipMemset(a, 0, 1025)),
    "memset freed": None,
    "free inside": code(hip.hipFree(int(a) + 8)),
    "free null": code(hip.hipFree(None)),
    "too much": code(hip.hipMalloc(total + 1)),
}
check(hip.hipFree(a))
results["codes"]["double free"] = code(hip.hipFree(a))
results["codes"]["memset freed"] = code(hip.hipMemset(a, 0, 1))
check(hip.hipFree(b))
results["all_free"] = check(hip.hipMemGetInfo())[0] == free_before

pinned = check(hip.hipHostMalloc(256, 2))
results["pinned_is_device_pointer"] = int(check(hip.hipHostGetDevicePointer(pinned, 0))) == int(pinned)
results["codes"]["hipFree of pinned"] = code(hip.hipFree(pinned))
results["pinned_flags"] = check(hip.hipHostGetFlags(pinned))
attributes = hip.hipPointerAttribute_t()
check(hip.hipPointerGetAttributes(attributes, pinned))
results["pinned_type"] = int(attributes.type)
results["codes"]["unregister pinned"] = code(hip.hipHostUnregister(pinned))
check(hip.hipHostFree(pinned))
results["codes"]["attributes of unknown"] = code(hip.hipPointerGetAttributes(attributes, source))

host = np.zeros(4096, np.uint8)
address = host.ctypes.data
check(hip.hipHostRegister(address, 1000, 0))
results["codes"] |= {
    "register twice": code(hip.hipHostRegister(address, 1000, 0)),
    "register overlap": code(hip.hipHostRegister(address + 999, 10, 0)),
    "register adjacent": code(hip.hipHostRegister(address + 1000, 10, 0)),
    "register nothing": code(hip.hipHostRegister(address + 2000, 0, 0)),
    "unregister inside": code(hip.hipHostUnregister(address + 1)),
    "unregister": code(hip.hipHostUnregister(address)),
    "unregister twice": code(hip.hipHostUnregister(address)),
}

# The last error stays until it is read.
hip.hipGetLastError()
hip.hipFree(1)
check(hip.hipDeviceSynchronize())
results["sticky"] = [code(hip.hipPeekAtLastError()), code(hip.hipGetLastError()), code(hip.hipGetLastError())]

library = ctypes.CDLL("libamdhip64.so")
library.flashattnSimLastFault.restype = ctypes.c_char_p
hip.hipMemset(0x10, 0, 4)
results["text"] = library.flashattnSimLastFault().decode()
library.hipGraphCreate()
results["unsupported"] = code(hip.hipGetLastError())
print(json.dumps(results))
