"""Device query: what HIP reports of the simulated card."""

import json

import pytest


@pytest.fixture(scope="module")
def query(run_python):
    return json.loads(run_python("device_query"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "AMD Instinct MI50 (simulated)"),
        ("gcnArchName", "gfx906:sramecc+:xnack-"),
        ("totalGlobalMem", 16 * 2**30),
        ("sharedMemPerBlock", 65536),
        ("warpSize", 64),
        ("maxThreadsPerBlock", 1024),
        ("maxThreadsDim", [1024, 1024, 1024]),
        ("maxGridSize", [2**31 - 1, 65535, 65535]),
        ("clockRate", 1_725_000),
        ("memoryClockRate", 1_000_000),
        ("memoryBusWidth", 4096),
        ("multiProcessorCount", 60),
        ("maxThreadsPerMultiProcessor", 2560),
        ("regsPerBlock", 65536),
        ("l2CacheSize", 4 * 2**20),
        ("cooperativeLaunch", 0),
        ("isLargeBar", 1),
    ],
)
def test_properties(query, field, value):
    assert query["properties"][field] == value


def test_arch_features(query):
    assert query["arch"] == {"hasDoubles": 1, "hasWarpShuffle": 1, "hasDynamicParallelism": 0}


def test_attributes_agree_with_properties(query):
    properties, attributes = query["properties"], query["attributes"]
    assert [attributes[f"MaxBlockDim{axis}"] for axis in "XYZ"] == properties["maxThreadsDim"]
    assert [attributes[f"MaxGridDim{axis}"] for axis in "XYZ"] == properties["maxGridSize"]
    pairs = {
        "MaxThreadsPerBlock": "maxThreadsPerBlock",
        "WarpSize": "warpSize",
        "MultiprocessorCount": "multiProcessorCount",
        "ClockRate": "clockRate",
        "MemoryClockRate": "memoryClockRate",
        "MemoryBusWidth": "memoryBusWidth",
        "L2CacheSize": "l2CacheSize",
        "MaxSharedMemoryPerBlock": "sharedMemPerBlock",
        "ComputeCapabilityMajor": "major",
        "ComputeCapabilityMinor": "minor",
        "CooperativeLaunch": "cooperativeLaunch",
        "ManagedMemory": "managedMemory",
        "WallClockRate": "clockInstructionRate",
    }
    assert {a: attributes[a] for a in pairs} == {a: properties[p] for a, p in pairs.items()}


def test_one_device_with_all_memory_free(query):
    assert query["count"] == 1
    assert query["memory"] == [16 * 2**30, 16 * 2**30]
