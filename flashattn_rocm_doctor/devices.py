"""Code objects, memory and a small launch on each device."""

from flashattn_rocm_doctor.child import ChildReport
from flashattn_rocm_doctor.finding import Finding, fail, ok, warn

__all__ = ["check_launch", "check_loading", "check_memory"]

_LOW_MEMORY = 1 << 30
_NO_BINARY = "hipErrorNoBinaryForGpu"


def check_loading(runtime: ChildReport) -> list[Finding]:
    """Whether the runtime takes the code objects on each device."""
    findings = []
    others_load = any(not device["load_error"] for device in runtime.all("device"))
    for device in runtime.all("device"):
        name = f"device {device['index']} ({device['name']})"
        if device["load_error"]:
            refused = warn if others_load and _NO_BINARY in device["load_error"] else fail
            findings.append(
                refused(
                    "code objects",
                    f"{name} refuses the kernels: {device['load_error']}",
                    "Build for this card's arch with PYTORCH_ROCM_ARCH, and reinstall if that is what the "
                    "package holds.",
                )
            )
        else:
            findings.append(ok("code objects", f"{name} loads them"))
    return findings


def check_memory(runtime: ChildReport) -> list[Finding]:
    """Free and total memory of each device."""
    findings = []
    for device in runtime.all("device"):
        name = f"device {device['index']}"
        if device["memory_error"]:
            findings.append(
                fail(
                    "memory",
                    f"{name} does not say: {device['memory_error']}",
                    "See `sudo dmesg | grep -i amdgpu`, and reboot if the card hangs.",
                )
            )
            continue
        found = f"{name}: {device['free'] / 2**30:.1f} of {device['total'] / 2**30:.1f} GiB free"
        if device["free"] < _LOW_MEMORY:
            findings.append(
                warn(
                    "memory",
                    found,
                    "End the programs that `rocm-smi --showpids` lists, or use a smaller batch.",
                )
            )
        else:
            findings.append(ok("memory", found))
    return findings


def check_launch(launch: ChildReport, card_wanted: bool) -> list[Finding]:
    """Whether small attentions agree with float64 on each device.

    Args:
        launch: what the launch probe said.
        card_wanted: results of the simulated card alone are a failure.
    """
    if launch.first("package") is None:
        return []  # the lines on torch and kernels say why nothing ran
    findings = [_launched(each) for each in launch.all("launch")]
    if launch.ending:
        findings.append(
            fail(
                "launch",
                f"the process of the test launch failed: {launch.ending}",
                "See `sudo dmesg | grep -iE 'amdgpu|fault'`; lower the clocks if the card is overclocked, "
                "and report what remains.",
            )
        )
    elif not findings:
        reasons = "; ".join(backend["error"] for backend in launch.all("backend"))
        findings.append(
            fail(
                "launch",
                f"there is no device: {reasons}",
                "See the lines above, or build the simulator with FLASHATTN_ROCM_BUILD_SIM=1.",
            )
        )
    elif card_wanted and all(each["device"] == "cpu" for each in launch.all("launch")):
        findings.append(
            fail(
                "launch",
                "only the simulated card computed",
                "See the lines on driver, runtime and torch: no card could be used.",
            )
        )
    return findings


def _launched(launch: dict) -> Finding:
    where = "the simulated card" if launch["device"] == "cpu" else launch["device"]
    name = f"{launch['dtype']} on {where}"
    if launch["error"]:
        return fail(
            "launch",
            f"{name}: {launch['error']}",
            "The error says what is wrong; docs/troubleshooting.md has the common ones.",
        )
    if launch["violations"]:
        return fail(
            "launch",
            f"{name} is wrong: {'; '.join(launch['violations'])}",
            "Undo any overclock or undervolt, look at `rocm-smi --showrasinfo`, then run `flashattn-rocm "
            "verify`.",
        )
    return ok("launch", f"{name} agrees with float64 (max abs error {launch['max_error']:.1e})")
