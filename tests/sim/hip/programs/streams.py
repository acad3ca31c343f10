"""Streams, events, contexts and host functions; as JSON."""

import ctypes
import json

from calls import check, code
from hip import hip

results: dict[str, object] = {}
library = ctypes.CDLL("libamdhip64.so")
stream = check(hip.hipStreamCreateWithFlags(1))
results["flags"] = check(hip.hipStreamGetFlags(stream))
least, greatest = check(hip.hipDeviceGetStreamPriorityRange())
urgent = check(hip.hipStreamCreateWithPriority(0, greatest - 5))
results["priority"] = [check(hip.hipStreamGetPriority(urgent)), greatest, least]
start, stop = check(hip.hipEventCreate()), check(hip.hipEventCreate())
untimed = check(hip.hipEventCreateWithFlags(2))

results["codes"] = {
    "never recorded": code(hip.hipEventElapsedTime(start, stop)),
    "record null stream": code(hip.hipEventRecord(stop, None)),
    "start never recorded": code(hip.hipEventElapsedTime(start, stop)),
    "record": code(hip.hipEventRecord(start, stream)),
    "record untimed": code(hip.hipEventRecord(untimed, stream)),
    "untimed": code(hip.hipEventElapsedTime(start, untimed)),
    "elapsed": code(hip.hipEventElapsedTime(start, stop)),
    "query event": code(hip.hipEventQuery(stop)),
    "synchronize event": code(hip.hipEventSynchronize(stop)),
    "wait": code(hip.hipStreamWaitEvent(stream, start, 0)),
    "query": code(hip.hipStreamQuery(stream)),
    "synchronize": code(hip.hipStreamSynchronize(stream)),
    "per thread": code(hip.hipStreamSynchronize(2)),
    "bad flags": code(hip.hipStreamCreateWithFlags(2)),
    "destroy null": code(hip.hipStreamDestroy(None)),
    "destroy": code(hip.hipStreamDestroy(stream)),
    "destroyed": code(hip.hipStreamSynchronize(stream)),
    "destroy event": code(hip.hipEventDestroy(start)),
    "destroyed event": code(hip.hipEventRecord(start, None)),
    "bad device": code(hip.hipSetDevice(1)),
    "bad init": code(hip.hipInit(1)),
}

start, stop = check(hip.hipEventCreate()), check(hip.hipEventCreate())
check(hip.hipEventRecord(start, None))
check(hip.hipEventRecord(stop, None))
results["elapsed ms"] = check(hip.hipEventElapsedTime(start, stop))

called = []
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
    lambda _stream, status, data: called.append(["callback", status, data])
)
host_function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: called.append(["function", data]))
library.hipStreamAddCallback(None, callback, ctypes.c_void_p(42), 0)
library.hipLaunchHostFunc(None, host_function, ctypes.c_void_p(43))
results["called"] = called

context = check(hip.hipCtxGetCurrent())
results["context"] = [
    code(hip.hipCtxSetCurrent(context)),
    code(hip.hipCtxSetCurrent(0x1234)),
    check(hip.hipCtxGetDevice()),
]
library.hipGetErrorName.restype = library.hipGetErrorString.restype = ctypes.c_char_p
results["names"] = [library.hipGetErrorName(n).decode() for n in (0, 209, 719, 801, 12345)]
results["text"] = library.hipGetErrorString(209).decode()
name = ctypes.c_char_p()
results["driver_name"] = [library.hipDrvGetErrorName(719, ctypes.byref(name)), name.value.decode()]
results["driver_unknown"] = library.hipDrvGetErrorName(12345, ctypes.byref(name))
print(json.dumps(results))
