"""Torch, the HIP runtime, and the kernels of the package."""

import dataclasses
from pathlib import Path

import pytest

from buildlib import archs
from flashattn_rocm_doctor.child import ChildReport
from flashattn_rocm_doctor.installation import Package, Torch
from flashattn_rocm_doctor.software import SUPPORTED_ARCHS, check_kernels, check_runtime, check_torch

ROCM = Torch("2.9.1+rocm6.3", "6.3.42134-a9a80e791", Path("/site/torch"))
CPU = Torch("2.13.0+cpu", None, Path("/site/torch"))
KERNEL = {"name": "fwd_d64", "vgpr": 120, "spills": 0, "scratch": 0}
PACKAGE = Package(Path("/site/flashattn_rocm"), {"gfx906": [KERNEL]}, {"gfx906": 1000})


def launched(*changes: dict, ending: str = "") -> ChildReport:
    """A launch probe that found one card; each change replaces or, with no facts, removes a stage."""
    stages = {
        "torch": {"cuda": True, "archs": ["gfx900", "gfx906"]},
        "package": {"version": "1", "built_for_rocm": True},
        "backend": {"backend": "hip", "devices": [{"arch": "gfx906:sramecc+:xnack-"}], "error": ""},
    }
    for change in changes:
        for stage, facts in change.items():
            stages[stage] = facts
    return ChildReport([{"stage": name} | facts for name, facts in stages.items() if facts], ending)


def runtime(version: int = 60342134, count: int = 1, error: str = "") -> ChildReport:
    library = {"stage": "library", "path": "/opt/rocm/lib/libamdhip64.so.6", "version": version}
    return ChildReport([library, {"stage": "devices", "count": count, "error": error}])


def test_rocm_torch_that_works():
    (finding,) = check_torch(ROCM, PACKAGE, launched(), card=True)
    assert (finding.status, finding.found) == ("ok", "torch 2.9.1+rocm6.3, ROCm 6.3.42134-a9a80e791")


def test_cpu_torch_without_a_card():
    (finding,) = check_torch(CPU, PACKAGE, launched(), card=False)
    assert finding.status == "ok"
    assert "simulated card" in finding.found


def test_no_torch(only):
    finding = only(check_torch(None, PACKAGE, ChildReport([]), card=False))
    assert (finding.status, finding.found) == ("fail", "torch is not installed")
    assert finding.advice.startswith("Install torch 2.7 or newer: its ROCm build for a card")


def test_old_torch(only):
    old = dataclasses.replace(ROCM, version="2.6.0+rocm6.2")
    finding = only(check_torch(old, PACKAGE, launched(), card=True))
    assert finding.found == "torch 2.6.0+rocm6.2 is too old"
    assert "Install torch 2.7 or newer, then build again" in finding.advice


def test_torch_that_cannot_be_imported(only):
    broken = ChildReport([], "ImportError: libtorch_cpu.so: cannot open shared object file")
    finding = only(check_torch(ROCM, PACKAGE, broken, card=True))
    assert "`import torch` fails: ImportError: libtorch_cpu.so" in finding.found
    assert "Reinstall torch" in finding.advice


def test_cpu_torch_beside_a_card(only):
    finding = only(check_torch(CPU, PACKAGE, launched(), card=True))
    assert finding.found == "torch 2.13.0+cpu is no ROCm build"
    assert "Install a ROCm build of torch" in finding.advice


def test_rocm_torch_that_sees_no_card(only):
    blind = launched({"torch": {"cuda": False, "archs": []}})
    finding = only(check_torch(ROCM, PACKAGE, blind, card=True))
    assert "sees no card" in finding.found
    assert "driver, permission and settings" in finding.advice


def test_torch_without_kernels_for_the_card(only):
    other = launched({"torch": {"cuda": True, "archs": ["gfx90a", "gfx942:sramecc+"]}})
    finding = only(check_torch(ROCM, PACKAGE, other, card=True))
    assert "has kernels for gfx90a, gfx942, not for gfx906" in finding.found
    assert "Install a torch that was built for gfx906" in finding.advice


def test_extension_of_a_torch_without_rocm(only):
    other = launched({"package": {"version": "1", "built_for_rocm": False}})
    finding = only(check_torch(ROCM, PACKAGE, other, card=True))
    assert finding.found == "flashattn_rocm was built against a torch without ROCm"
    assert "pip install --no-build-isolation ." in finding.advice


def test_runtime_of_torchs_version():
    (finding,) = check_runtime(runtime(), ROCM, True)
    assert (finding.status, finding.found) == ("ok", "HIP 6.3 in /opt/rocm/lib/libamdhip64.so.6: 1 card")
    (finding,) = check_runtime(runtime(), None, True)
    assert finding.status == "ok"


@pytest.mark.parametrize(("version", "status"), [(70051831, "fail"), (60443482, "warn")])
def test_runtime_of_another_version(only, version, status):
    finding = only(check_runtime(runtime(version), ROCM, True))
    assert finding.status == status
    assert "but torch was built for HIP 6.3" in finding.found
    assert "Use ROCm 6.3, or a torch for ROCm" in finding.advice
    assert "LD_LIBRARY_PATH" in finding.advice


@pytest.mark.parametrize(("card_wanted", "status"), [(True, "fail"), (False, "warn")])
def test_no_runtime(only, card_wanted, status):
    missing = ChildReport([{"stage": "no library", "errors": []}])
    finding = only(check_runtime(missing, ROCM, card_wanted))
    assert (finding.status, finding.found) == (status, "there is no libamdhip64")
    assert "install ROCm (Debian: libamdhip64-5)" in finding.advice


@pytest.mark.parametrize(("card_wanted", "status"), [(True, "fail"), (False, "warn")])
def test_runtime_without_a_device(only, card_wanted, status):
    finding = only(check_runtime(runtime(count=0, error="hipErrorNoDevice (100)"), ROCM, card_wanted))
    assert finding.status == status
    assert "sees no card: hipErrorNoDevice (100)" in finding.found
    assert "`rocminfo` must list the card first" in finding.advice


def test_runtime_that_crashes_at_loading(only):
    finding = only(check_runtime(ChildReport([], "ended by SIGSEGV: it said nothing"), ROCM, True))
    assert "crashes: ended by SIGSEGV" in finding.found
    assert "Reinstall ROCm" in finding.advice


def test_runtime_that_hangs(only):
    hanging = ChildReport(runtime().stages[:1], "no answer within 120 s")
    finding = only(check_runtime(hanging, ROCM, True))
    assert "does not answer: no answer within 120 s" in finding.found
    assert "reboot" in finding.advice


def test_kernels_for_the_device():
    (finding,) = check_kernels(PACKAGE, ["gfx906", "gfx906"], launched())
    assert (finding.status, finding.found) == ("ok", "1 kernels for gfx906, up to 120 VGPRs, no spills")


def test_no_package(only):
    finding = only(check_kernels(None, ["gfx906"], ChildReport([])))
    assert "not installed in this interpreter" in finding.found
    assert "pip install --no-build-isolation ." in finding.advice


def test_damaged_package(only):
    finding = only(check_kernels(dataclasses.replace(PACKAGE, fault="no ELF"), ["gfx906"], launched()))
    assert finding.found == "the code objects are damaged: no ELF"
    assert finding.advice.startswith("Reinstall with")


def test_no_kernels_for_the_device(only):
    finding = only(check_kernels(PACKAGE, ["gfx90a"], launched()))
    assert (finding.status, finding.found) == ("fail", "a device is a gfx90a, and the package holds gfx906")
    assert finding.advice == "Build for it: `PYTORCH_ROCM_ARCH=gfx90a pip install --no-build-isolation .`."


def test_a_card_that_has_no_kernels(only):
    finding = only(check_kernels(PACKAGE, ["gfx1100"], launched()))
    assert finding.status == "fail"
    assert finding.advice.startswith("Use a card of gfx900, gfx906, gfx908, gfx90a")


@pytest.mark.parametrize(("arch", "can_build"), [("gfx1100", False), ("gfx90a", True)])
def test_a_second_card_of_another_arch(only, arch, can_build):
    finding = only(check_kernels(PACKAGE, ["gfx906", arch], launched()))
    assert finding.status == "warn"
    assert "HIP_VISIBLE_DEVICES" in finding.advice
    assert ("PYTORCH_ROCM_ARCH" in finding.advice) == can_build


def test_a_second_card_that_torch_has_no_kernels_for():
    devices = [{"arch": "gfx906:sramecc+:xnack-"}, {"arch": "gfx1100"}]
    two = launched({"backend": {"backend": "hip", "devices": devices, "error": ""}})
    assert [finding.status for finding in check_torch(ROCM, PACKAGE, two, card=True)] == ["ok"]


def test_supported_archs_are_those_of_the_build():
    assert SUPPORTED_ARCHS == archs.SUPPORTED


@pytest.mark.parametrize("fault", [{"spills": 12}, {"scratch": 52}])
def test_kernels_that_spill(only, fault):
    spilling = dataclasses.replace(PACKAGE, kernels={"gfx906": [KERNEL, KERNEL | fault]})
    finding = only(check_kernels(spilling, ["gfx906"], launched()))
    assert finding.status == "warn"
    assert "1 of them spill registers" in finding.found
    assert "Build with clang 19" in finding.advice


def test_extension_that_cannot_be_loaded(only):
    broken = launched({"package": {}, "backend": {}}, ending="ImportError: undefined symbol: _ZN3c10")
    finding = only(check_kernels(PACKAGE, ["gfx906"], broken))
    assert "`import flashattn_rocm` fails: ImportError: undefined symbol" in finding.found
    assert "Build it against the torch that is installed now" in finding.advice
