"""Modules, launches, launch limits, faults and occupancy, through hip-python and plain C calls."""

import json

import pytest

SUCCESS, INVALID_VALUE, INVALID_CONFIGURATION, INVALID_HANDLE, NOT_SUPPORTED = 0, 1, 9, 400, 801


@pytest.fixture(scope="module")
def launches(run_python, kernels):
    return json.loads(run_python("launch", kernels))


def test_kernel_computes_and_is_counted(launches):
    assert launches["vadd"]
    waves = 16
    assert launches["counted"] >= 10 * waves


def test_arguments_as_pointer_array(launches):
    assert launches["params"] == SUCCESS
    assert launches["params_vadd"]


def test_exactly_one_form_of_arguments(launches):
    assert launches["both"] == INVALID_VALUE
    assert "kernelParams and extra are both set" in launches["both_text"]
    assert launches["neither"] == INVALID_VALUE


def test_extended_launch_counts_work_items(launches):
    assert launches["ext"] == SUCCESS
    assert launches["ext_remainder"] == INVALID_CONFIGURATION


def test_cooperative_launch_is_refused(launches):
    assert launches["cooperative"] == NOT_SUPPORTED


def test_kernel_reads_its_launch_shape(launches):
    assert launches["shape"] == [16, 2, 4, 3 * 16, 5 * 2, 7 * 4]


def test_hidden_arguments_tell_shape_and_dynamic_lds(launches):
    *counts, group_xy, group_z, dimensions, dynamic_lds = launches["hidden"]
    assert counts == [3, 5, 7]
    assert (group_xy & 0xFFFF, group_xy >> 16) == (16, 2)
    assert (group_z & 0xFFFF, group_z >> 16) == (4, 0)
    assert dimensions & 0xFFFF == 3
    assert dynamic_lds == 96


def test_every_workgroup_runs_once_with_its_ids(launches):
    assert launches["groups"]


def test_packed_arguments_of_mixed_alignment(launches):
    assert launches["mixed_code"] == SUCCESS
    assert launches["mixed"] == [-3.0, 5.0, 2.25, -7.0, float(1 << 20)]


def test_short_argument_buffer_is_refused(launches):
    assert launches["short_buffer"] == INVALID_VALUE
    assert "has 40 bytes, the arguments have 48" in launches["short_buffer_text"]


def test_device_variables_and_relocations(launches):
    assert launches["variables"] == [1.0, 2.0, 3.0, 4.0, 7.0]
    assert launches["counter"] == [8, 4]


def test_dynamic_lds_lies_behind_static_lds(launches):
    assert launches["reverse"] == [(63 - i) + (63 - i) + 1.0 for i in range(64)]


def test_read_only_host_memory_can_be_read_and_not_written(launches):
    assert launches["register_read_only"] == SUCCESS
    assert launches["read"] == "hipSuccess"
    assert launches["write"] == "hipErrorLaunchFailure"
    assert "read-only" in launches["write_text"]


def test_fault_names_what_happened_and_the_process_lives_on(launches):
    assert launches["fault"] == "hipErrorLaunchFailure"
    text = launches["fault_text"]
    for part in ("write_beyond", "global_store_dword", "3", "15"):
        assert part in text, text
    assert launches["after_fault"] == "hipSuccess"
    assert launches["text_after_success"] is None


def test_lds_beyond_the_launch_size_faults(launches):
    assert launches["lds_fault"] == "hipErrorLaunchFailure"


@pytest.mark.parametrize(
    ("case", "code", "words"),
    [
        ("zero grid", "hipErrorInvalidConfiguration", "gridDim.x=0, allowed: 1 to 2147483647"),
        ("grid y", "hipErrorInvalidConfiguration", "gridDim.y=65536, allowed: 1 to 65535"),
        ("work-items", "hipErrorInvalidConfiguration", "4294967296 work-items, allowed: up to 4294967295"),
        ("block x", "hipErrorInvalidConfiguration", "blockDim.x=1025, allowed: 1 to 1024"),
        ("threads", "hipErrorInvalidConfiguration", "2048 threads, allowed: up to 1024"),
        ("lds", "hipErrorInvalidValue", "65537 bytes (0 static + 65537 dynamic), allowed: up to 65536"),
        ("stream", "hipErrorInvalidHandle", "stream 0x1234 is not a live stream"),
        ("built for", "hipErrorLaunchFailure", "256 threads, but the kernel is built for up to 128"),
    ],
)
def test_launch_limits_say_what_is_allowed(launches, case, code, words):
    got, text = launches["limits"][case]
    assert got.replace("hipErrorInvalidResourceHandle", "hipErrorInvalidHandle") == code
    assert words in text


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("vadd 64", 40),  # 10 waves a SIMD
        ("vadd 256", 10),
        ("vadd 1024", 2),  # 16 waves each, 40 fit
        ("vadd 128", 16),  # barrier slots, not the 20 that fit by waves
        ("vadd 192 + 21504", 3),  # 64 KiB / 21504
        ("vadd 64 + 1", 40),  # one byte takes a granule of 512: 128 would fit
        ("lds_32k 256", 2),
        ("vgprs_100 64", 8),  # 256 / 100: 2 waves a SIMD
        ("vgprs_100 128", 0),  # built for 64
        ("vadd + 65537", 0),
        ("bad", "hipErrorInvalidValue"),
        ("best vadd", [60 * 4, 640]),  # 4 times 10 waves; 1024 would give 2 times 16
        ("best lds_32k", [60 * 2, 256]),
    ],
)
def test_occupancy(launches, case, expected):
    assert launches["occupancy"][case] == expected


def test_function_attributes(launches):
    assert launches["attributes"] == {"threads": 256, "lds": 32768, "registers": 100}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("missing kernel", "hipErrorNotFound"),
        ("missing variable", "hipErrorNotFound"),
        ("missing file", "hipErrorFileNotFound"),
        ("no module", "hipErrorInvalidHandle"),
        ("no function", INVALID_HANDLE),
        ("unloaded twice", "hipErrorInvalidHandle"),
        ("unloaded function", "hipErrorInvalidHandle"),
    ],
)
def test_bad_handles_and_names(launches, case, expected):
    code = launches["codes"][case]
    if isinstance(code, str):
        code = code.replace("hipErrorInvalidResourceHandle", "hipErrorInvalidHandle")
    assert code == expected
