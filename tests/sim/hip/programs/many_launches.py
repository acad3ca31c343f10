"""What a process holds after each quarter of many launches; as JSON.

Arguments: a code object, the number of launches. Every launch has a stream, buffers and a registered array of
its own; every 10th has a module of its own, every 10th faults, every 50th is timed by events.
"""

import ctypes
import json
import os
import sys
from pathlib import Path

from tests.kit.heap import heap_bytes

CODE_OBJECT, LAUNCHES = Path(sys.argv[1]).read_bytes(), int(sys.argv[2])
COUNT = 256
hip = ctypes.CDLL("libamdhip64.so")


def held() -> dict[str, int]:
    """What the process and the card have in use."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    call("hipMemGetInfo", ctypes.byref(free), ctypes.byref(total))
    return {
        "device bytes": total.value - free.value,
        "heap bytes": heap_bytes(),
        "resident bytes": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE"),
        "mappings": len(Path("/proc/self/maps").read_text().splitlines()),
        "threads": len(os.listdir("/proc/self/task")),
        "files": len(os.listdir("/proc/self/fd")),
    }


def call(name: str, *arguments: object, expected: int = 0) -> None:
    status = getattr(hip, name)(*arguments)
    if status != expected:
        raise RuntimeError(f"{name}: {status}, expected {expected}")


def handle(name: str, *arguments: object) -> ctypes.c_void_p:
    made = ctypes.c_void_p()
    call(name, ctypes.byref(made), *arguments)
    return made


def launch(kernel: str, module: ctypes.c_void_p, stream: ctypes.c_void_p, *arguments: object, fails: bool):
    function = handle("hipModuleGetFunction", module, kernel.encode())
    pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
    shape = (COUNT // 64, 1, 1, 64, 1, 1, 0)
    failure = 719  # hipErrorLaunchFailure
    call("hipModuleLaunchKernel", function, *shape, stream, pointers, None, expected=failure if fails else 0)


def one(n: int, loaded: ctypes.c_void_p) -> None:
    own = n % 10 == 1
    module = handle("hipModuleLoadData", CODE_OBJECT) if own else loaded
    stream = handle("hipStreamCreate")
    a, c = (handle("hipMalloc", ctypes.c_size_t(4 * COUNT)) for _ in range(2))
    call("hipMemsetAsync", a, 0, ctypes.c_size_t(4 * COUNT), stream)
    host = (ctypes.c_float * COUNT)()
    call("hipHostRegister", host, ctypes.c_size_t(4 * COUNT), 0)
    events = [handle("hipEventCreate") for _ in range(2)] if n % 50 == 3 else []
    for event in events[:1]:
        call("hipEventRecord", event, stream)
    if n % 10 == 2:
        beyond = ctypes.c_int(1 << 20)
        launch("write_beyond", module, stream, c, ctypes.c_int(COUNT), beyond, fails=True)
    else:
        b = ctypes.c_void_p(ctypes.addressof(host))
        launch("vadd", module, stream, a, b, c, ctypes.c_int(COUNT), fails=False)
    if events:
        milliseconds = ctypes.c_float()
        call("hipEventRecord", events[1], stream)
        call("hipEventElapsedTime", ctypes.byref(milliseconds), *events)
    for event in events:
        call("hipEventDestroy", event)
    call("hipHostUnregister", host)
    call("hipStreamDestroy", stream)
    for buffer in (a, c):
        call("hipFree", buffer)
    if own:
        call("hipModuleUnload", module)


module = handle("hipModuleLoadData", CODE_OBJECT)
quarters = []
for n in range(LAUNCHES):
    one(n, module)
    if (n + 1) % (LAUNCHES // 4) == 0:
        quarters.append(held())
print(json.dumps(quarters))
