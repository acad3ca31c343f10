"""All checks in order."""

from flashattn_rocm_doctor.child import ChildReport, run_probe
from flashattn_rocm_doctor.devices import check_launch, check_loading, check_memory
from flashattn_rocm_doctor.driver import check_driver, check_settings
from flashattn_rocm_doctor.finding import Finding
from flashattn_rocm_doctor.installation import Package, Torch, find_package, find_torch
from flashattn_rocm_doctor.machine import Machine
from flashattn_rocm_doctor.software import check_kernels, check_runtime, check_torch

__all__ = ["examine"]

# As the extension looks for them (csrc/runtime/hip_library.cpp).
_LIBRARIES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so")


def examine(machine: Machine, timeout: float) -> list[Finding]:
    """Looks at the machine from the driver up to a launch.

    Args:
        machine: to look at.
        timeout: seconds for each probe that runs in a process of its own.

    Returns:
        The findings, at least one for each check that could be made.
    """
    torch, package = find_torch(), find_package()
    simulated_only = machine.environment.get("FLASHATTN_ROCM_BACKEND") == "sim"
    asked_for_card = machine.environment.get("FLASHATTN_ROCM_BACKEND") == "hip"
    card_wanted = not simulated_only and (asked_for_card or (torch is not None and torch.hip is not None))
    runtime = _probe_runtime(torch, package, timeout)
    launch = run_probe("launch_probe", timeout=timeout) if torch is not None else ChildReport([])
    findings = check_driver(machine, card_wanted)
    findings += check_settings(machine, card_wanted)
    findings += check_torch(torch, package, launch, card=bool(machine.gpus()) and not simulated_only)
    findings += check_runtime(runtime, torch, card_wanted)
    findings += check_kernels(package, _archs(machine, launch), launch)
    findings += check_loading(runtime)
    findings += check_memory(runtime)
    return findings + check_launch(launch, card_wanted)


def _probe_runtime(torch: Torch | None, package: Package | None, timeout: float) -> ChildReport:
    libraries = [*_LIBRARIES]
    if torch is not None and torch.hip is not None:
        libraries.insert(0, str(torch.folder / "lib/libamdhip64.so"))
    bundles = [] if package is None or package.fault else list(map(str, package.bundles))
    return run_probe("hip_probe", *bundles, *libraries, timeout=timeout)


def _archs(machine: Machine, launch: ChildReport) -> list[str]:
    """Of the cards; without one, of the simulated card."""
    backends = {backend["backend"]: backend["devices"] for backend in launch.all("backend")}
    devices = backends.get("hip") or ([] if machine.gpus() else backends.get("sim", []))
    return [device["arch"].split(":")[0] for device in devices] or [gpu.arch for gpu in machine.gpus()]
