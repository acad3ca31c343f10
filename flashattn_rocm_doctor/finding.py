"""What a check says."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "Status", "fail", "ok", "warn"]

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    Attributes:
        check: what was looked at, such as "driver".
        status: "ok"; "warn": attention runs, but not as it could; "fail": it does not run, or not rightly.
        found: what was there.
        advice: one sentence on what to do; empty if the status is "ok".
    """

    check: str
    status: Status
    found: str
    advice: str = ""


def ok(check: str, found: str) -> Finding:
    """All is well."""
    return Finding(check, "ok", found)


def warn(check: str, found: str, advice: str) -> Finding:
    """Attention runs, but not as it could."""
    return Finding(check, "warn", found, advice)


def fail(check: str, found: str, advice: str) -> Finding:
    """Attention does not run, or not rightly."""
    return Finding(check, "fail", found, advice)
