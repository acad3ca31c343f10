"""Probes in a process of their own: a driver that hangs or aborts must not end the report."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ChildReport", "report", "run_probe"]

_MARK = "flashattn-rocm-doctor: "


@dataclass(frozen=True)
class ChildReport:
    """What a probe said before it ended.

    Attributes:
        stages: what it reported, in order; each has a "stage".
        ending: how it failed; empty if it did not.
    """

    stages: list[dict]
    ending: str = ""

    def first(self, stage: str) -> dict | None:
        """The first report of a stage."""
        return next((each for each in self.stages if each["stage"] == stage), None)

    def all(self, stage: str) -> list[dict]:
        """All reports of a stage."""
        return [each for each in self.stages if each["stage"] == stage]


def report(stage: str, **facts: object) -> None:
    """Called in the probe: tells the parent at once, for the next stage may crash."""
    print(_MARK + json.dumps({"stage": stage, **facts}), flush=True)


def run_probe(module: str, *arguments: str, timeout: float) -> ChildReport:
    """Runs a module of this package.

    Args:
        module: its name in this package.
        arguments: for it.
        timeout: seconds after which it is stopped.
    """
    here = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"{__package__}.{module}", *arguments],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        return ChildReport(_stages(output), f"no answer within {timeout:g} s")
    return ChildReport(_stages(done.stdout), _ending(done.returncode, done.stderr))


def _stages(output: str) -> list[dict]:
    lines = (line for line in output.splitlines() if line.startswith(_MARK))
    return [json.loads(line.removeprefix(_MARK)) for line in lines]


def _ending(status: int, errors: str) -> str:
    if status == 0:
        return ""
    said = [line.strip() for line in errors.splitlines() if line.strip()]
    last = said[-1] if said else "it said nothing"
    if status < 0:
        return f"ended by {signal.Signals(-status).name}: {last}"
    return last
