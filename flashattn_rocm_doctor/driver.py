"""The kernel's side: device files, permission, cards, and variables that hide them."""

from collections.abc import Iterator

from flashattn_rocm_doctor.finding import Finding, fail, ok, warn
from flashattn_rocm_doctor.machine import Machine

__all__ = ["check_driver", "check_settings"]

_HIDING = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_ALLOWED = {
    "FLASHATTN_ROCM_BACKEND": ("auto", "hip", "sim"),
    "FLASHATTN_ROCM_SDPA": ("0", "1", "strict"),
}
_SIMULATED = "tensors on cpu run on the simulated card"


def check_driver(machine: Machine, card_wanted: bool) -> list[Finding]:
    """Whether the kernel offers a card that this user may open.

    Args:
        machine: to look at.
        card_wanted: a missing card is a failure, not a warning.
    """
    missing = fail if card_wanted else warn
    if not machine.kfd.exists():
        found = "there is no /dev/kfd" + ("" if card_wanted else f"; {_SIMULATED}")
        return [missing("driver", found, _no_driver_advice(machine))]
    gpus = machine.gpus()
    findings = list(_permission(machine))
    if gpus:
        cards = ", ".join(f"{gpu.arch} ({gpu.memory_bytes / 2**30:.1f} GiB)" for gpu in gpus)
        findings.insert(0, ok("driver", f"amdgpu {machine.driver_version()} offers {cards}"))
    else:
        findings.insert(0, missing("driver", "amdgpu offers no card for computing", _no_card_advice(machine)))
    return findings


def _no_driver_advice(machine: Machine) -> str:
    if machine.in_container():
        return (
            "Start the container with --device=/dev/kfd --device=/dev/dri --group-add video --group-add "
            "render, if the host has a card."
        )
    if not machine.amd_cards_on_pci():
        return _no_card_advice(machine)
    if not machine.driver_loaded():
        return "Load the driver with `sudo modprobe amdgpu`; if there is none, install ROCm's amdgpu-dkms."
    return (
        "The driver runs without its compute part: see `sudo dmesg | grep -i kfd`, and use a kernel that has "
        "CONFIG_HSA_AMD, or ROCm's amdgpu-dkms."
    )


def _no_card_advice(machine: Machine) -> str:
    if machine.amd_cards_on_pci():
        return "See `sudo dmesg | grep -iE 'amdgpu|kfd'`: the driver refused the card that lies on the bus."
    return (
        "To use a card, check that `lspci -d 1002:` lists it; if not, check its seat and power, and switch "
        "on "
        "Above 4G Decoding in the BIOS."
    )


def _permission(machine: Machine) -> Iterator[Finding]:
    nodes = machine.render_nodes()
    if not nodes:
        yield fail(
            "permission",
            "there is no /dev/dri/renderD*",
            "Pass /dev/dri to the container, or reload the driver with `sudo modprobe -r amdgpu; sudo "
            "modprobe amdgpu`.",
        )
        return
    closed = [file for file in (machine.kfd, *nodes) if not machine.accessible(file)]
    if not closed:
        yield ok("permission", f"/dev/kfd and {len(nodes)} of /dev/dri/renderD* can be opened")
        return
    groups = dict.fromkeys(machine.group_of(file) for file in closed)
    names = ", ".join(f"/dev/{file.relative_to(machine.root / 'dev')}" for file in closed)
    yield fail(
        "permission",
        f"this user may not open {names}",
        f"Run `sudo usermod -aG {','.join(groups)} $USER` and log in again (in a container: "
        + " ".join(f"--group-add {group}" for group in groups)
        + ").",
    )


def check_settings(machine: Machine, card_wanted: bool) -> list[Finding]:
    """Variables of the environment that hide the card, disguise it, or are misspelt."""
    environment = machine.environment
    findings = []
    for name in _HIDING:
        if environment.get(name, "0") in ("", "-1"):
            hides = fail if card_wanted else warn
            findings.append(
                hides("settings", f"{name}={environment[name]} hides every card", f"Unset {name}.")
            )
    if version := environment.get("HSA_OVERRIDE_GFX_VERSION"):
        findings.append(
            warn(
                "settings",
                f"HSA_OVERRIDE_GFX_VERSION={version} makes the card pass for another",
                "Unset HSA_OVERRIDE_GFX_VERSION: kernels of another arch compute nonsense or crash.",
            )
        )
    for name, allowed in _ALLOWED.items():
        if environment.get(name, allowed[0]) not in allowed:
            choices = ", ".join(allowed)
            findings.append(
                fail(
                    "settings",
                    f"{name}={environment[name]} is unknown",
                    f"Set {name} to one of {choices}, or unset it.",
                )
            )
    if tile := environment.get("FLASHATTN_ROCM_FWD_TILE"):
        findings.append(
            warn(
                "settings",
                f"FLASHATTN_ROCM_FWD_TILE={tile} overrides the choice of kernels",
                "Unset FLASHATTN_ROCM_FWD_TILE unless you mean to compare kernels.",
            )
        )
    findings += _index_checks(environment.get("FLASHATTN_ROCM_CHECK_INDICES"))
    return findings or [ok("settings", "no variable hides a card or forces a kernel")]


def _index_checks(value: str | None) -> Iterator[Finding]:
    """Of cache lengths and page numbers (csrc/ops/kv_cache.cpp)."""
    name = "FLASHATTN_ROCM_CHECK_INDICES"
    if value == "1":
        yield warn(
            "settings",
            f"{name}=1 waits for the card in every call with a KV cache",
            f"Unset {name} unless you look for a wrong length or page number.",
        )
    elif value not in (None, "0"):
        yield warn(
            "settings", f"{name}={value} is unknown and ignored", f"Set {name} to one of 0, 1, or unset it."
        )
