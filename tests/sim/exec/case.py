"""A snippet with its expected outcome, and the comparison."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import pytest

from tests.kit.asm import LANES, Outcome, Snippet, run_snippets
from tests.kit.hip import HipError, simulator
from tests.sim.exec.formats import F16, Format
from tests.sim.exec.ops.op import FORMATS, is_float, width

Value = int | float


@dataclass(frozen=True)
class Expect:
    """What VGPR `register` (and the next one for 64 bits) holds afterwards.

    Attributes:
        register: the first VGPR.
        kind: type code of ops.op; float kinds accept any quiet NaN for a NaN.
        lanes: 64 bit patterns (compared exactly) or floats (within ulp or absolute); None skips a lane.
        rest: bits 31:16 of a 16-bit kind, per lane; zeros if empty, None skips a lane.
        ulp: allowed distance from the exact value, in units in the last place.
        absolute: allowed absolute distance, in place of ulp.
        zero_sign_free: +0 and -0 are the same.
    """

    register: int
    kind: str
    lanes: Sequence[Value | None]
    rest: Sequence[int | None] = ()
    ulp: float = 0
    absolute: float = 0
    zero_sign_free: bool = False

    @property
    def registers(self) -> tuple[int, ...]:
        return (self.register, self.register + 1) if width(self.kind) == 64 else (self.register,)


@dataclass(frozen=True)
class Case:
    """One snippet; None for a scalar means "not checked"."""

    label: str
    snippet: Snippet
    vgprs: tuple[Expect, ...] = ()
    sgprs: dict[int, int] = field(default_factory=dict)
    vcc: int | None = None
    exec: int | None = None
    scc: int | None = None
    m0: int | None = None
    memory: bytes | None = None

    def mnemonics(self) -> set[str]:
        """The opcodes that the snippet names, without encoding suffixes."""
        first_words = re.findall(r"^\s*([a-z][a-z0-9_]+)(?=[\s;]|$)", self.snippet.body, re.MULTILINE)
        return {re.sub(r"_(e32|e64|sdwa|dpp)$", "", word) for word in first_words}


def _exact_difference(kind: str, actual: int, expected: float) -> float:
    """|actual - expected| in units of the last place of `expected`; inf when they are no neighbours."""
    fmt = FORMATS[kind]
    if math.isnan(expected):
        return 0 if fmt.is_nan(actual) else math.inf
    if fmt.is_nan(actual):
        return math.inf
    largest = fmt.value(fmt.infinity - 1)
    if math.isinf(expected) or abs(Fraction(expected)) > largest:
        same_sign = fmt.is_negative(actual) == (expected < 0)
        return 0 if fmt.is_infinite(actual) and same_sign else math.inf
    if fmt.is_infinite(actual):
        return math.inf
    exact = Fraction(expected)
    exponent = math.frexp(expected)[1] - 1 if expected else fmt.min_normal_exponent
    step = Fraction(2) ** (max(exponent, fmt.min_normal_exponent) - fmt.mantissa_bits)
    if fmt.width == 32 and abs(exact) < Fraction(2) ** fmt.min_normal_exponent:
        # The fp32 units flush a denormal result.
        return 0 if fmt.is_zero(actual) else math.inf
    return float(abs(fmt.value(actual) - exact) / step)


def _lane_agrees(expect: Expect, actual: int, expected: Value) -> bool:
    kind = expect.kind
    if expect.absolute and isinstance(expected, float):
        fmt = FORMATS[kind]
        if math.isnan(expected):
            return fmt.is_nan(actual)
        finite = not fmt.is_nan(actual) and not fmt.is_infinite(actual)
        return finite and abs(float(fmt.value(actual)) - expected) <= expect.absolute
    if isinstance(expected, float):
        return _exact_difference(kind, actual, expected) <= expect.ulp
    wanted = int(expected) & ((1 << width(kind)) - 1)
    if actual == wanted:
        return True
    if kind == "h32":
        halves = ((value & 0xFFFF, value >> 16) for value in (actual, wanted))
        return all(_same_float(expect, F16, a, w) for a, w in zip(*halves, strict=True))
    return is_float(kind) and _same_float(expect, FORMATS[kind], actual, wanted)


def _same_float(expect: Expect, fmt: Format, actual: int, wanted: int) -> bool:
    """Equal, or NaNs of which the expected one decides whether a signalling one is allowed."""
    if fmt.is_nan(wanted):
        return fmt.is_nan(actual) and (fmt.is_signalling(wanted) or not fmt.is_signalling(actual))
    if expect.zero_sign_free and fmt.is_zero(wanted):
        return fmt.is_zero(actual)
    return actual == wanted


def _check_register(expect: Expect, snippet: Snippet, outcome: Outcome) -> list[str]:
    bits = width(expect.kind)
    low = outcome.v[expect.register]
    problems = []
    for lane in range(LANES):
        expected = expect.lanes[lane]
        actual = int(low[lane])
        if bits == 64:
            actual |= int(outcome.v[expect.register + 1][lane]) << 32
        elif bits == 16:
            rest = expect.rest[lane] if expect.rest else 0
            if rest is not None and actual >> 16 != rest:
                problems.append(f"lane {lane}: upper half {actual >> 16:#06x}, expected {rest:#06x}")
            actual &= 0xFFFF
        if expected is not None and not _lane_agrees(expect, actual, expected):
            shown = expected if isinstance(expected, float) else hex(expected & ((1 << bits) - 1))
            sources = " ".join(f"v{r}={int(lanes[lane]):#x}" for r, lanes in snippet.vgprs.items())
            problems.append(f"lane {lane}: {actual:#x}, expected {shown} (from {sources})")
    return problems


def problems_of(case: Case, outcome: Outcome | HipError) -> str:
    """Every difference as text, "" if there is none."""
    if isinstance(outcome, HipError):
        return f"{case.label}\n    {case.snippet.body}\n    {outcome}"
    problems: list[str] = []
    for expect in case.vgprs:
        problems += [f"v{expect.register} {p}" for p in _check_register(expect, case.snippet, outcome)]
    problems += [
        f"s{r}: {outcome.s[r]:#x}, expected {value & 0xFFFFFFFF:#x}"
        for r, value in case.sgprs.items()
        if outcome.s[r] != value & 0xFFFFFFFF
    ]
    for name in ("vcc", "exec", "scc", "m0"):
        wanted, actual = getattr(case, name), getattr(outcome, name)
        if wanted is not None and wanted != actual:
            problems.append(f"{name}: {actual:#x}, expected {wanted:#x}")
    if case.memory is not None and case.memory != outcome.memory:
        wrong = [i for i in range(len(case.memory)) if case.memory[i] != outcome.memory[i]]
        at = wrong[0]
        problems.append(
            f"memory: {len(wrong)} bytes differ, first at {at}: "
            f"{outcome.memory[at]:#04x}, expected {case.memory[at]:#04x}"
        )
    if not problems:
        return ""
    more = f"\n    ... and {len(problems) - 4} more" if len(problems) > 4 else ""
    return f"{case.label}\n    {case.snippet.body}\n    " + "\n    ".join(problems[:4]) + more


class Batch:
    """Named groups of cases that share one code object; they run when the first of them is asked for."""

    def __init__(self, groups: Mapping[str, Callable[[], Iterable[Case]]]) -> None:
        self.groups = tuple(groups)
        self._make = dict(groups)
        self._problems: dict[str, str] | None = None

    def cases(self) -> dict[str, list[Case]]:
        return {name: list(make()) for name, make in self._make.items()}

    def _run(self) -> dict[str, str]:
        named = [(name, case) for name, cases in self.cases().items() for case in cases]
        outcomes = run_snippets(simulator(), [case.snippet for _, case in named])
        problems: dict[str, list[str]] = {name: [] for name in self.groups}
        for (name, case), outcome in zip(named, outcomes, strict=True):
            if text := problems_of(case, outcome):
                problems[name].append(text)
        return {name: "\n".join(texts) for name, texts in problems.items()}

    def check(self, group: str) -> None:
        """Fails the calling test with every difference in `group`."""
        if self._problems is None:
            self._problems = self._run()
        if self._problems[group]:
            pytest.fail(self._problems[group], pytrace=False)
