"""The state of a card as the amdgpu driver shows it in sysfs, and whether it may be measured."""

import re
from dataclasses import dataclass
from pathlib import Path

_SYSFS = Path("/sys/bus/pci/devices")
_BUSY_PERCENT = 10
_FOREIGN_BYTES = 1 << 30  # of memory in use; a desktop takes less, a model more
_LEAST_CLOCK_SHARE = 0.9
_HOT_MARGIN = 5.0  # degrees below the critical temperature, where the firmware already lowers the clock


@dataclass(frozen=True)
class Sample:
    """One look; None where the driver does not say.

    Attributes:
        clock_mhz: of the compute units now.
        watts: of the board.
        celsius: at the edge of the die.
    """

    clock_mhz: float | None
    watts: float | None
    celsius: float | None


class CardState:
    """Reads the files of one card.

    Args:
        pci: address, as 0000:03:00.0.
        sysfs: the folder of all PCI devices.
    """

    def __init__(self, pci: str, sysfs: Path = _SYSFS) -> None:
        self._folder = sysfs / pci
        self.samples: list[Sample] = []

    def sample(self) -> Sample:
        """Looks at the card, and remembers what it saw."""
        current = re.search(r"(\d+)\s*mhz\s*\*", self._text("pp_dpm_sclk"), re.IGNORECASE)
        clock = float(current[1]) if current else None
        watts, celsius = self._sensor("power1_average", 1e-6), self._sensor("temp1_input", 1e-3)
        self.samples.append(Sample(clock, watts, celsius))
        return self.samples[-1]

    def why_busy(self) -> str:
        """Why the card should not be measured now; empty if nothing speaks against it."""
        busy = self._number("gpu_busy_percent")
        if busy is not None and busy > _BUSY_PERCENT:
            return f"the card is busy: {busy:.0f} % (gpu_busy_percent); stop what uses it"
        used = self._number("mem_info_vram_used")
        if used is not None and used > _FOREIGN_BYTES:
            return f"another process holds {used / 2**30:.1f} GiB of the card's memory; stop it"
        return self._why_hot()

    def why_throttled(self) -> str:
        """Why what was measured is not the card at its best; empty if it is."""
        top = max(
            (float(mhz) for mhz in re.findall(r"(\d+)\s*mhz", self._text("pp_dpm_sclk"), re.I)), default=0
        )
        lowest = min((s.clock_mhz for s in self.samples if s.clock_mhz is not None), default=top)
        if lowest < top * _LEAST_CLOCK_SHARE:
            return (
                f"the card throttled: its clock fell to {lowest:.0f} of {top:.0f} MHz under load; "
                "see to its cooling and its power limit"
            )
        return self._why_hot()

    def _why_hot(self) -> str:
        now, critical = self._sensor("temp1_input", 1e-3), self._sensor("temp1_crit", 1e-3)
        if now is not None and critical is not None and now > critical - _HOT_MARGIN:
            return f"the card is hot and throttles: {now:.0f} of {critical:.0f} degrees; see to its cooling"
        return ""

    def _sensor(self, name: str, unit: float) -> float | None:
        for folder in sorted(self._folder.glob("hwmon/hwmon*")):
            value = self._number(str((folder / name).relative_to(self._folder)))
            if value is not None:
                return value * unit
        return None

    def _number(self, name: str) -> float | None:
        try:
            return float(self._text(name))
        except ValueError:
            return None

    def _text(self, name: str) -> str:
        try:
            return (self._folder / name).read_text()
        except OSError:  # not every driver and card has every file
            return ""
