"""Device query in the manner of hip-python's own example: properties, then attributes; as JSON."""

import json

from calls import check
from hip import hip

properties = hip.hipDeviceProp_t()
check(hip.hipGetDeviceProperties(properties, 0))

FIELDS = (
    *("name", "gcnArchName", "totalGlobalMem", "sharedMemPerBlock", "regsPerBlock", "warpSize"),
    *("maxThreadsPerBlock", "maxThreadsDim", "maxGridSize", "clockRate", "major", "minor"),
    *("multiProcessorCount", "memoryClockRate", "memoryBusWidth", "l2CacheSize", "isLargeBar"),
    *("maxThreadsPerMultiProcessor", "cooperativeLaunch", "managedMemory", "clockInstructionRate"),
)
ATTRIBUTES = (
    *("MaxBlockDimX", "MaxBlockDimY", "MaxBlockDimZ", "MaxGridDimX", "MaxGridDimY", "MaxGridDimZ"),
    *("MaxThreadsPerBlock", "WarpSize", "MultiprocessorCount", "ClockRate", "MemoryClockRate"),
    *("MemoryBusWidth", "L2CacheSize", "MaxSharedMemoryPerBlock", "ComputeCapabilityMajor"),
    *("ComputeCapabilityMinor", "CooperativeLaunch", "ManagedMemory", "WallClockRate"),
)


def plain(value):
    return value.decode() if isinstance(value, bytes) else value


def attribute(name):
    number = getattr(hip.hipDeviceAttribute_t, f"hipDeviceAttribute{name}")
    return check(hip.hipDeviceGetAttribute(number, 0))


arch = properties.arch
print(
    json.dumps(
        {
            "count": check(hip.hipGetDeviceCount()),
            "properties": {name: plain(getattr(properties, name)) for name in FIELDS},
            "arch": {n: getattr(arch, n) for n in ("hasDoubles", "hasWarpShuffle", "hasDynamicParallelism")},
            "attributes": {name: attribute(name) for name in ATTRIBUTES},
            "memory": check(hip.hipMemGetInfo()),
            "version": check(hip.hipRuntimeGetVersion()),
        }
    )
)
