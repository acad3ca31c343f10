"""Module loading, launches in every form, occupancy and faults; as JSON. Argument: a code object."""

import ctypes
import json
import sys

import numpy as np
from calls import check, code
from hip import hip

LIBRARY = ctypes.CDLL("libamdhip64.so")
LIBRARY.flashattnSimLastFault.restype = ctypes.c_char_p
LIBRARY.flashattnSimWaveInstructions.restype = ctypes.c_uint64
results: dict[str, object] = {}
module = check(hip.hipModuleLoad(sys.argv[1].encode()))


def function(name: str):
    return check(hip.hipModuleGetFunction(module, name.encode()))


def launch(name, grid=(1, 1, 1), block=(64, 1, 1), lds=0, params=(), stream=None):
    return hip.hipModuleLaunchKernel(
        function(name),
        *grid,
        *block,
        sharedMemBytes=lds,
        stream=stream,
        kernelParams=None,
        extra=params,
    )


def upload(array: np.ndarray):
    pointer = check(hip.hipMalloc(array.nbytes))
    check(hip.hipMemcpy(pointer, array, array.nbytes, hip.hipMemcpyKind.hipMemcpyHostToDevice))
    return pointer


def download(pointer, count: int, dtype=np.float32) -> list:
    host = np.zeros(count, dtype)
    check(hip.hipMemcpy(host, pointer, host.nbytes, hip.hipMemcpyKind.hipMemcpyDeviceToHost))
    return host.tolist()


def fault_text() -> str | None:
    text = LIBRARY.flashattnSimLastFault()
    return None if text is None else text.decode()


n = 1000
a, b = np.arange(n, dtype=np.float32), np.full(n, 0.5, np.float32)
da, db, dc = upload(a), upload(b), upload(np.zeros(n, np.float32))

# As hip-python's module-launch example does it.
before = LIBRARY.flashattnSimWaveInstructions()
check(launch("vadd", (16, 1, 1), params=(da, db, dc, ctypes.c_int(n))))
check(hip.hipDeviceSynchronize())
results["vadd"] = download(dc, n) == (a + b).tolist()
results["counted"] = LIBRARY.flashattnSimWaveInstructions() - before

# kernelParams: an array of pointers to the arguments, by ctypes, as a C program would.
pointers = [ctypes.c_void_p(int(p)) for p in (db, db, dc)]
arguments = [*pointers, ctypes.c_int(n)]
params = (ctypes.c_void_p * 4)(*(ctypes.addressof(x) for x in arguments))
raw = ctypes.c_void_p(int(function("vadd")))
size = [ctypes.c_uint(x) for x in (16, 1, 1, 64, 1, 1, 0)]
results["params"] = LIBRARY.hipModuleLaunchKernel(raw, *size, None, params, None)
results["params_vadd"] = download(dc, n) == (b + b).tolist()
results["both"] = LIBRARY.hipModuleLaunchKernel(raw, *size, None, params, params)
results["both_text"] = fault_text()
results["neither"] = LIBRARY.hipModuleLaunchKernel(raw, *size, None, None, None)
# hipExtModuleLaunchKernel counts work-items.
ext = [ctypes.c_uint(x) for x in (1024, 1, 1, 64, 1, 1)]
results["ext"] = LIBRARY.hipExtModuleLaunchKernel(
    raw, *ext, ctypes.c_size_t(0), None, params, None, None, None, 0
)
ext = [ctypes.c_uint(x) for x in (1000, 1, 1, 64, 1, 1)]
results["ext_remainder"] = LIBRARY.hipExtModuleLaunchKernel(
    raw, *ext, ctypes.c_size_t(0), None, params, None, None, None, 0
)
results["cooperative"] = LIBRARY.hipModuleLaunchCooperativeKernel(raw, *size, None, params)

shape = upload(np.zeros(6, np.uint32))
check(launch("shape", (3, 5, 7), (16, 2, 4), params=(shape,)))
results["shape"] = download(shape, 6, np.uint32)
hidden = upload(np.zeros(7, np.uint32))
check(launch("hidden_arguments", (3, 5, 7), (16, 2, 4), lds=96, params=(hidden,)))
results["hidden"] = download(hidden, 7, np.uint32)
groups = upload(np.zeros(105, np.uint32))
check(launch("count_groups", (3, 5, 7), params=(groups, ctypes.c_uint(3), ctypes.c_uint(5))))
results["groups"] = download(groups, 105, np.uint32) == list(range(1, 106))


class Mixed(ctypes.Structure):
    _fields_ = [("out", ctypes.c_void_p), ("small", ctypes.c_char), ("wide", ctypes.c_double)]


class MixedArguments(ctypes.Structure):
    _fields_ = [("a", ctypes.c_byte), ("m", Mixed), ("b", ctypes.c_short), ("c", ctypes.c_long)]


packed = MixedArguments(-3, Mixed(int(dc), 5, 2.25), -7, 1 << 20)
packed_size = ctypes.c_size_t(ctypes.sizeof(packed))
extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(packed_size), 3)
raw_mixed = ctypes.c_void_p(int(function("mixed")))
one = [ctypes.c_uint(x) for x in (1, 1, 1, 1, 1, 1, 0)]
results["mixed_code"] = LIBRARY.hipModuleLaunchKernel(raw_mixed, *one, None, None, extra)
results["mixed"] = download(dc, 5)
packed_size.value -= 8
results["short_buffer"] = LIBRARY.hipModuleLaunchKernel(raw_mixed, *one, None, None, extra)
results["short_buffer_text"] = fault_text()

check(launch("read_variables", params=(dc,)))
results["variables"] = download(dc, 5)
counter, bytes_of_counter = check(hip.hipModuleGetGlobal(module, b"counter"))
results["counter"] = [download(counter, 1, np.int32)[0], bytes_of_counter]

data = upload(np.arange(64, dtype=np.float32))
check(launch("reverse", lds=256, params=(data,)))
results["reverse"] = download(data, 64)

# Memory that kernels may read only.
page = np.ones(n, np.float32)
bounds = ctypes.c_void_p(page.ctypes.data), ctypes.c_size_t(page.nbytes)
results["register_read_only"] = LIBRARY.flashattnSimHostRegisterReadOnly(*bounds)
host = page.ctypes.data
results["read"] = code(launch("vadd", (16, 1, 1), params=(ctypes.c_void_p(host), db, dc, ctypes.c_int(n))))
results["write"] = code(launch("vadd", (16, 1, 1), params=(da, db, ctypes.c_void_p(host), ctypes.c_int(n))))
results["write_text"] = fault_text()
check(hip.hipHostUnregister(host))

# Faults and refusals: each leaves the process usable.
small = upload(np.zeros(64, np.float32))
results["fault"] = code(
    launch("write_beyond", (4, 1, 1), (16, 1, 1), params=(small, ctypes.c_int(64), ctypes.c_int(1)))
)
results["fault_text"] = fault_text()
results["after_fault"] = code(launch("vadd", (16, 1, 1), params=(da, db, dc, ctypes.c_int(n))))
results["text_after_success"] = fault_text()
results["lds_fault"] = code(launch("reverse", lds=0, params=(data,)))
results["limits"] = {}
for name, arguments in {
    "zero grid": {"grid": (0, 1, 1)},
    "grid y": {"grid": (1, 65536, 1)},
    "work-items": {"grid": (1 << 26, 1, 1)},
    "block x": {"block": (1025, 1, 1)},
    "threads": {"block": (64, 32, 1)},
    "lds": {"lds": 65537},
    "stream": {"stream": 0x1234},
}.items():
    outcome = code(launch("vadd", **arguments, params=(da, db, dc, ctypes.c_int(0))))
    results["limits"][name] = [outcome, fault_text()]
results["limits"]["built for"] = [code(launch("exact_128", block=(256, 1, 1), params=(dc,))), fault_text()]


def blocks(name: str, threads: int, lds: int = 0):
    return hip.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(function(name), threads, lds)


results["occupancy"] = {
    "vadd 64": check(blocks("vadd", 64)),
    "vadd 256": check(blocks("vadd", 256)),
    "vadd 1024": check(blocks("vadd", 1024)),
    "vadd 192 + 21504": check(blocks("vadd", 192, 21504)),
    "vadd 64 + 1": check(blocks("vadd", 64, 1)),
    "vadd 128": check(blocks("vadd", 128)),
    "lds_32k 256": check(blocks("lds_32k", 256)),
    "vgprs_100 64": check(blocks("vgprs_100", 64)),
    "vgprs_100 128": check(blocks("vgprs_100", 128)),
    "vadd + 65537": check(blocks("vadd", 64, 65537)),
    "bad": code(blocks("vadd", 0)),
    "best vadd": check(hip.hipModuleOccupancyMaxPotentialBlockSize(function("vadd"), 0, 0)),
    "best lds_32k": check(hip.hipModuleOccupancyMaxPotentialBlockSize(function("lds_32k"), 0, 0)),
}
attribute = hip.hipFunction_attribute
results["attributes"] = {
    "threads": check(
        hip.hipFuncGetAttribute(attribute.HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function("lds_32k"))
    ),
    "lds": check(
        hip.hipFuncGetAttribute(attribute.HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function("lds_32k"))
    ),
    "registers": check(hip.hipFuncGetAttribute(attribute.HIP_FUNC_ATTRIBUTE_NUM_REGS, function("vgprs_100"))),
}

results["codes"] = {
    "missing kernel": code(hip.hipModuleGetFunction(module, b"nothing")),
    "missing variable": code(hip.hipModuleGetGlobal(module, b"nothing")),
    "missing file": code(hip.hipModuleLoad(b"/nonexistent.co")),
    "no module": code(hip.hipModuleGetFunction(0x1234, b"vadd")),
    "no function": LIBRARY.hipModuleLaunchKernel(ctypes.c_void_p(8), *one, None, params, None),
}
old = function("vadd")
check(hip.hipModuleUnload(module))
results["codes"]["unloaded twice"] = code(hip.hipModuleUnload(module))
results["codes"]["unloaded function"] = code(
    hip.hipModuleLaunchKernel(old, 1, 1, 1, 64, 1, 1, 0, None, None, (da, db, dc, ctypes.c_int(n)))
)
print(json.dumps(results))
