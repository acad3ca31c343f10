"""Times between events around launches, and their profiles; as JSON. Argument: a code object."""

import ctypes
import json
import sys

from calls import check, code
from hip import hip

COUNT = 1024

library = ctypes.CDLL("libamdhip64.so")
library.flashattnSimLastProfile.restype = ctypes.c_char_p
module = check(hip.hipModuleLoad(sys.argv[1].encode()))
vadd = check(hip.hipModuleGetFunction(module, b"vadd"))
a, b, c = (check(hip.hipMalloc(4 * COUNT)) for _ in range(3))
check(hip.hipMemset(a, 0, 4 * COUNT))
check(hip.hipMemset(b, 0, 4 * COUNT))


def launch(count: int = COUNT) -> None:
    parameters = (a, b, c, ctypes.c_int(count))
    check(
        hip.hipModuleLaunchKernel(
            vadd,
            *(count // 64, 1, 1),
            *(64, 1, 1),
            sharedMemBytes=0,
            stream=None,
            kernelParams=None,
            extra=parameters,
        )
    )


def profile() -> dict | None:
    text = library.flashattnSimLastProfile()
    return None if text is None else json.loads(text)


def milliseconds() -> float | None:
    last = profile()
    return None if last is None else last["milliseconds"]


def event():
    return check(hip.hipEventCreate())


def record(recorded) -> None:
    check(hip.hipEventRecord(recorded, None))


profiles = {}
launch()
profiles["no event"] = profile() is not None
untimed = check(hip.hipEventCreateWithFlags(2))
launch()
profiles["untimed event"] = profile() is not None

start, middle, stop = event(), event(), event()
record(start)
launch()
record(middle)
results: dict[str, object] = {"profile ms": milliseconds()}
profiles["event"] = profile() is not None
launch(COUNT // 2)
record(stop)
results["second profile ms"] = milliseconds()
results["launch ms"] = profile()["card"]["launch_us"] / 1e3 if profile() else None
results["profiles"] = profiles
results["code"] = code(hip.hipEventElapsedTime(start, middle))
if results["code"] == "hipSuccess":
    results["elapsed ms"] = check(hip.hipEventElapsedTime(start, middle))
    results["reversed ms"] = check(hip.hipEventElapsedTime(middle, start))
    results["both ms"] = check(hip.hipEventElapsedTime(start, stop))
record(start)
record(stop)
results["code without a launch"] = code(hip.hipEventElapsedTime(start, stop))

last = profile()
for timed in (start, middle, stop):
    check(hip.hipEventDestroy(timed))
launch(COUNT // 4)
results["profile kept after the events"] = profile() == last
print(json.dumps(results))
