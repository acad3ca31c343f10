"""Torch, the HIP runtime, and the kernels of the package."""

from collections.abc import Iterator, Sequence

from flashattn_rocm_doctor.child import ChildReport
from flashattn_rocm_doctor.finding import Finding, fail, ok, warn
from flashattn_rocm_doctor.installation import Package, Torch

__all__ = ["check_kernels", "check_runtime", "check_torch"]

SUPPORTED_ARCHS = ("gfx900", "gfx906", "gfx908", "gfx90a")  # as in scripts/buildlib/archs.py
_OLDEST_TORCH = (2, 7)
_REBUILD = "pip install --no-build-isolation ."
_REINSTALL = f"Reinstall with `{_REBUILD}` in the repository."


def check_torch(
    torch: Torch | None, package: Package | None, launch: ChildReport, card: bool
) -> list[Finding]:
    """Whether torch is there, new enough, of the right build, and loads together with the package.

    Args:
        torch: of this interpreter.
        package: likewise.
        launch: what the launch probe said.
        card: the machine has a card.
    """
    if torch is None:
        return [
            fail(
                "torch",
                "torch is not installed",
                "Install torch 2.7 or newer: its ROCm build for a card, its CPU build for the simulated "
                "card.",
            )
        ]
    if torch.release < _OLDEST_TORCH:
        return [
            fail(
                "torch", f"torch {torch.version} is too old", "Install torch 2.7 or newer, then build again."
            )
        ]
    imported = launch.first("torch")
    if imported is None:
        return [
            fail(
                "torch",
                f"`import torch` fails: {launch.ending}",
                "Reinstall torch; `python -c 'import torch'` shows the whole error.",
            )
        ]
    if torch.hip is None:
        found = f"torch {torch.version} is no ROCm build"
        if card:
            return [
                fail(
                    "torch",
                    found,
                    "Install a ROCm build of torch, and build flashattn_rocm again: with this one the card "
                    "is not used.",
                )
            ]
        return [ok("torch", f"{found}: tensors on cpu run on the simulated card")]
    if not imported["cuda"]:
        return [
            fail(
                "torch",
                f"torch {torch.version} (ROCm {torch.hip}) sees no card",
                "See the lines on driver, permission and settings; else install a torch whose ROCm still "
                "knows the card.",
            )
        ]
    return [_torch_kernels(torch, package, imported["archs"], launch), *_built_for(package, launch)]


def _torch_kernels(
    torch: Torch, package: Package | None, archs: Sequence[str], launch: ChildReport
) -> Finding:
    known = {arch.split(":")[0] for arch in archs}
    ours = package.kernels if package is not None else {}
    missing = [arch for arch in _device_archs(launch) if known and arch in ours and arch not in known]
    if missing:
        return fail(
            "torch",
            f"torch {torch.version} has kernels for {', '.join(sorted(known))}, not for {', '.join(missing)}",
            f"Install a torch that was built for {missing[0]} (docs/install.md names some): its own "
            "operations fail otherwise.",
        )
    return ok("torch", f"torch {torch.version}, ROCm {torch.hip}")


def _built_for(package: Package | None, launch: ChildReport) -> Iterator[Finding]:
    loaded = launch.first("package")
    if package is not None and loaded is not None and not loaded["built_for_rocm"]:
        yield fail(
            "torch",
            "flashattn_rocm was built against a torch without ROCm",
            f"Build it again with this torch: `{_REBUILD}`.",
        )


def check_runtime(runtime: ChildReport, torch: Torch | None, card_wanted: bool) -> list[Finding]:
    """Whether a HIP runtime loads, sees a card, and is of torch's version."""
    missing = fail if card_wanted else warn
    library = runtime.first("library")
    if library is None:
        if runtime.ending:
            return [
                fail(
                    "runtime",
                    f"the HIP runtime crashes: {runtime.ending}",
                    "Reinstall ROCm in the version of the driver; `rocminfo` must work first.",
                )
            ]
        return [
            missing(
                "runtime",
                "there is no libamdhip64",
                "To use a card, install ROCm (Debian: libamdhip64-5) or a ROCm build of torch, and put its "
                "folder on LD_LIBRARY_PATH.",
            )
        ]
    version = (library["version"] // 10_000_000, library["version"] // 100_000 % 100)
    found = f"HIP {version[0]}.{version[1]} in {library['path']}"
    devices = runtime.first("devices")
    if devices is None:
        return [
            fail(
                "runtime",
                f"{found} does not answer: {runtime.ending}",
                "See `sudo dmesg | grep -i amdgpu`, and reboot if the card hangs.",
            )
        ]
    if not devices["count"]:
        return [
            missing(
                "runtime",
                f"{found} sees no card: {devices['error'] or '0 devices'}",
                "See the lines on driver, permission and settings; `rocminfo` must list the card first.",
            )
        ]
    return [_same_version(found, version, torch, devices["count"])]


def _same_version(found: str, version: tuple[int, int], torch: Torch | None, count: int) -> Finding:
    cards = f"{count} card" + ("s" if count > 1 else "")
    if torch is None or torch.hip is None:
        return ok("runtime", f"{found}: {cards}")
    wanted = tuple(int(part) for part in torch.hip.split(".")[:2])
    if version == wanted:
        return ok("runtime", f"{found}: {cards}")
    differs = fail if version[0] != wanted[0] else warn
    return differs(
        "runtime",
        f"{found}, but torch was built for HIP {wanted[0]}.{wanted[1]}",
        f"Use ROCm {wanted[0]}.{wanted[1]}, or a torch for ROCm {version[0]}.{version[1]}; check "
        "LD_LIBRARY_PATH.",
    )


def check_kernels(package: Package | None, archs: Sequence[str], launch: ChildReport) -> list[Finding]:
    """Whether the package is whole, its extension loads, and it has kernels for each device.

    Args:
        package: of this interpreter.
        archs: of the devices, such as "gfx906".
        launch: what the launch probe said.
    """
    if package is None:
        return [
            fail(
                "kernels",
                "flashattn_rocm is not installed in this interpreter",
                f"Run `{_REBUILD}` in the repository, with the Python that you use.",
            )
        ]
    if package.fault:
        return [fail("kernels", f"the code objects are damaged: {package.fault}", _REINSTALL)]
    others_served = any(arch in package.kernels for arch in archs)
    findings = [_resources(package, arch, others_served) for arch in dict.fromkeys(archs)]
    if launch.first("torch") is not None and launch.first("package") is None:
        findings.append(
            fail(
                "kernels",
                f"`import flashattn_rocm` fails: {launch.ending}",
                f"Build it against the torch that is installed now: `{_REBUILD}`.",
            )
        )
    return findings or [ok("kernels", f"{package.folder / 'lib'} holds {', '.join(package.kernels)}")]


def _resources(package: Package, arch: str, others_served: bool) -> Finding:
    kernels = package.kernels.get(arch)
    if kernels is None:
        found = f"a device is a {arch}, and the package holds {', '.join(package.kernels)}"
        build = f"`PYTORCH_ROCM_ARCH={arch} {_REBUILD}`"
        if others_served:
            hide = "Hide that card with HIP_VISIBLE_DEVICES if programs should not pick it"
            return warn(
                "kernels", found, f"{hide}, or build for it: {build}." if _supported(arch) else f"{hide}."
            )
        if not _supported(arch):
            return fail(
                "kernels",
                found,
                f"Use a card of {', '.join(SUPPORTED_ARCHS)}: there are no kernels for others.",
            )
        return fail("kernels", found, f"Build for it: {build}.")
    most = max(kernel["vgpr"] for kernel in kernels)
    found = f"{len(kernels)} kernels for {arch}, up to {most} VGPRs"
    spilling = [kernel["name"] for kernel in kernels if kernel["spills"] or kernel["scratch"]]
    if spilling:
        return warn(
            "kernels",
            f"{found}; {len(spilling)} of them spill registers",
            f"Build with clang 19 or the clang of ROCm 6.3 or newer: `CLANG=clang++-19 {_REBUILD}`.",
        )
    return ok("kernels", f"{found}, no spills")


def _device_archs(launch: ChildReport) -> list[str]:
    devices = [
        device
        for backend in launch.all("backend")
        if backend["backend"] == "hip"
        for device in backend["devices"]
    ]
    return [device["arch"].split(":")[0] for device in devices]


def _supported(arch: str) -> bool:
    return arch in SUPPORTED_ARCHS
