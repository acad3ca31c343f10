"""Code objects, memory and the launch."""

from flashattn_rocm_doctor.child import ChildReport
from flashattn_rocm_doctor.devices import check_launch, check_loading, check_memory

CARD = {
    "stage": "device",
    "index": 0,
    "name": "AMD Instinct MI50",
    "free": 15 << 30,
    "total": 16 << 30,
    "memory_error": "",
    "load_error": "",
}
PACKAGE = {"stage": "package"}
RIGHT = {
    "stage": "launch",
    "device": "cuda:0",
    "dtype": "float16",
    "error": "",
    "max_error": 4e-4,
    "violations": [],
}


def launch(*changes: dict, ending=""):
    return ChildReport([PACKAGE, *(RIGHT | change for change in changes)], ending)


def test_a_card_in_order():
    card = ChildReport([CARD])
    assert check_loading(card)[0].found == "device 0 (AMD Instinct MI50) loads them"
    assert check_memory(card)[0].found == "device 0: 15.0 of 16.0 GiB free"
    (finding,) = check_launch(launch({}), True)
    assert finding.found == "float16 on cuda:0 agrees with float64 (max abs error 4.0e-04)"
    assert {finding.status for finding in (*check_loading(card), *check_memory(card))} == {"ok"}


def test_refused_code_objects(only):
    refused = ChildReport([CARD | {"load_error": "hipErrorNoBinaryForGpu (209)"}])
    finding = only(check_loading(refused))
    assert finding.found == "device 0 (AMD Instinct MI50) refuses the kernels: hipErrorNoBinaryForGpu (209)"
    assert "PYTORCH_ROCM_ARCH" in finding.advice


def test_a_second_card_that_refuses_code_objects(only):
    second = CARD | {"index": 1, "name": "RX 7900", "load_error": "hipErrorNoBinaryForGpu (209)"}
    assert only(check_loading(ChildReport([CARD, second]))).status == "warn"
    crashing = second | {"load_error": "hipErrorOutOfMemory (2)"}
    assert only(check_loading(ChildReport([CARD, crashing]))).status == "fail"
    assert only(check_loading(ChildReport([second]))).status == "fail"


def test_full_memory(only):
    finding = only(check_memory(ChildReport([CARD | {"free": 500 << 20}])))
    assert (finding.status, finding.found) == ("warn", "device 0: 0.5 of 16.0 GiB free")
    assert "rocm-smi --showpids" in finding.advice


def test_memory_that_cannot_be_asked(only):
    finding = only(check_memory(ChildReport([CARD | {"memory_error": "hipErrorUnknown (999)"}])))
    assert finding.found == "device 0 does not say: hipErrorUnknown (999)"
    assert "dmesg" in finding.advice


def test_wrong_result(only):
    finding = only(check_launch(launch({}, {"violations": ["cosine 0.5 < 0.9999"]}), True))
    assert finding.found == "float16 on cuda:0 is wrong: cosine 0.5 < 0.9999"
    assert "overclock" in finding.advice
    assert "flashattn-rocm verify" in finding.advice


def test_failed_launch(only):
    finding = only(check_launch(launch({"error": "hipModuleLaunchKernel failed"}), True))
    assert finding.found == "float16 on cuda:0: hipModuleLaunchKernel failed"
    assert "docs/troubleshooting.md" in finding.advice


def test_launch_that_kills_its_process(only):
    finding = only(
        check_launch(launch({}, ending="ended by SIGABRT: Memory access fault by GPU node-1"), True)
    )
    assert "Memory access fault by GPU node-1" in finding.found
    assert "dmesg" in finding.advice


def test_no_device(only):
    reports = [PACKAGE, {"stage": "backend", "backend": "sim", "devices": [], "error": "no simulator"}]
    finding = only(check_launch(ChildReport(reports), False))
    assert finding.found == "there is no device: no simulator"
    assert "FLASHATTN_ROCM_BUILD_SIM=1" in finding.advice


def test_only_the_simulated_card_where_a_card_is_wanted(only):
    simulated = launch({"device": "cpu"})
    assert check_launch(simulated, False)[0].status == "ok"
    finding = only(check_launch(simulated, True))
    assert finding.found == "only the simulated card computed"
    assert "no card could be used" in finding.advice


def test_nothing_is_said_where_the_package_did_not_load():
    assert check_launch(ChildReport([], "ImportError"), True) == []
