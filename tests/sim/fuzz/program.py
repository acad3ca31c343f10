"""Random functions as trees of statements, and the source of a compilation unit.

Functions are trees rather than text so that the reducer can leave statements out.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.sim.fuzz.expressions import KINDS, MEMBERS, Scope, expression, member


@dataclass
class Statement:
    """One line, or a block: `head { body } tail { other }`."""

    text: str
    body: list["Statement"] = field(default_factory=list)
    other: list["Statement"] = field(default_factory=list)

    def lines(self, indent: str = "  ") -> Iterator[str]:
        if not self.body and not self.other:
            if not self.text.startswith(("if", "for", "switch")):
                yield indent + self.text
            return
        yield f"{indent}{self.text} {{"
        for statement in self.body:
            yield from statement.lines(indent + "  ")
        if self.other:
            yield f"{indent}}} else {{"
            for statement in self.other:
                yield from statement.lines(indent + "  ")
        yield f"{indent}}}"


@dataclass
class Function:
    """Phases alternate with exchanges: phase 0, exchange 0, phase 1, ..."""

    name: str
    phases: list[list[Statement]]
    exchanges: list[list[str]]
    helpers: list[str]

    def source(self) -> str:
        parts = list(self.helpers)
        for number, statements in enumerate(self.phases):
            parts.append(f"LANE_FUNCTION void {self.name}_{number}(State& s, const Context& c) {{")
            parts += [line for statement in statements for line in statement.lines()]
            parts.append("}")
        parts.append(f"FUZZ_KERNEL({self.name}) {{\n  BEGIN")
        for number in range(len(self.phases)):
            parts.append(f"  PHASE({self.name}_{number})")
            parts += [
                f"  {exchange}"
                for exchange in (self.exchanges[number] if number < len(self.exchanges) else [])
            ]
        return "\n".join([*parts, "  END\n}"])


DPP_CONTROLS = [
    *(0x100 + n for n in range(1, 16)),
    *(0x110 + n for n in range(1, 16)),
    *(0x120 + n for n in range(1, 16)),
    *(0x130, 0x134, 0x138, 0x13C, 0x140, 0x141),
]


def _dpp(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.15:  # the broadcasts, for the rows that they are defined for
        control, rows = rng.choice([(0x142, 0xA), (0x143, 0xC)])
        return f"dpp<{control:#x}, {rows:#x}, 0xf, false>"
    control = rng.getrandbits(8) if kind < 0.5 else rng.choice(DPP_CONTROLS)
    rows, banks = (0xF, 0xF) if rng.random() < 0.5 else (rng.getrandbits(4), rng.getrandbits(4))
    return f"dpp<{control:#x}, {rows:#x}, {banks:#x}, {rng.choice(['true', 'false'])}>"


def exchange(rng: random.Random) -> str:
    odd = rng.randrange(1, 64, 2)
    patterns = [0x8000 | rng.getrandbits(8), rng.getrandbits(15), 0x1F | rng.getrandbits(5) << 10]
    choices = [
        _dpp(rng),
        _dpp(rng),
        f"swizzle<{rng.choice(patterns):#x}>",
        "pull",
        f"push<{odd}, {rng.randrange(64)}>",
        f"broadcast<{rng.randrange(64)}>",
        "broadcast_first",
        "count_odd",
        f"through_lds<{odd}, {rng.randrange(64)}>",
        f"bytes_through_lds<{odd}>",
        "reduce_in_lds",
    ]
    return f"EXCHANGE(i[{rng.randrange(6)}], i[{rng.randrange(6)}], {rng.choice(choices)})"


class _Writer:
    """Builds the statements of one function; `fresh` makes local names unique."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.fresh = 0

    def _name(self, prefix: str) -> str:
        self.fresh += 1
        return f"{prefix}{self.fresh}"

    def assignment(self, depth: int) -> Statement:
        kind = self.scope.rng.choices(KINDS, weights=(6, 2, 3, 1, 2))[0]
        return Statement(f"{member(self.scope, kind)} = {expression(self.scope, kind, depth)};")

    def atomic(self) -> Statement:
        rng = self.scope.rng
        operation = rng.choice(["add", "sub", "and", "or", "xor", "min", "max"])
        value = expression(self.scope, "u32", 1)
        target = member(self.scope, "u32")
        return Statement(f"{target} = __atomic_fetch_{operation}(c.slot, {value}, __ATOMIC_RELAXED);")

    def bit_copy(self) -> Statement:
        """memcpy between members of different types; a float never receives arbitrary bits."""
        rng = self.scope.rng
        size, offset = rng.choice([(1, 4), (2, 2), (4, 0), (4, 4), (8, 0)])
        target = rng.choice([f"s.l[{rng.randrange(3)}]", f"s.i[{2 * rng.randrange(3)}]"])
        source = rng.choice([f"s.l[{rng.randrange(3)}]", f"s.i[{2 * rng.randrange(3)}]"])
        if size + offset > 8 or target == source:
            size, offset = 4, 0
        return Statement(f"__builtin_memmove((u8*)&{target} + {offset}, (const u8*)&{source}, {size});")

    def array(self) -> Statement:
        """A local array with dynamic indices: registers, scratch or LDS, as the compiler likes."""
        name = self._name("a")
        scope = self.scope
        length = scope.rng.choice([4, 8, 16])
        kind, store = scope.rng.choice(
            [("u32", "u32"), ("u32", "u8"), ("u32", "u16"), ("u64", "u64"), ("f32", "f32")]
        )
        values = ", ".join(f"({store}){expression(scope, kind, 1)}" for _ in range(4))
        body = [Statement(f"{store} {name}[{length}] = {{{values}}};")]
        for _ in range(scope.rng.randint(1, 3)):
            index = expression(scope, "u32", 1)
            body.append(Statement(f"{name}[{index} & {length - 1}] = ({store}){expression(scope, kind, 2)};"))
        index = expression(scope, "u32", 1)
        body.append(Statement(f"{member(scope, kind)} = {name}[{index} & {length - 1}];"))
        return Statement("if (true)", body)

    def branch(self, depth: int) -> Statement:
        body = self.block(depth - 1, self.scope.rng.randint(1, 3))
        other = self.block(depth - 1, self.scope.rng.randint(0, 2))
        return Statement(f"if ({expression(self.scope, 'bool', 2)})", body, other)

    def loop(self, depth: int) -> Statement:
        """A loop with a trip count that differs between lanes."""
        name = self._name("n")
        bound = f"({expression(self.scope, 'u32', 1)} & {self.scope.rng.choice([3, 7])})"
        self.scope.locals.setdefault("u32", [])
        body = self.block(depth - 1, self.scope.rng.randint(1, 3))
        if self.scope.rng.random() < 0.3:
            body.append(Statement(f"if ({expression(self.scope, 'bool', 1)})", [Statement("break;")]))
        return Statement(f"for (u32 {name} = 0, end{name} = {bound}; {name} < end{name}; ++{name})", body)

    def switch(self, depth: int) -> Statement:
        cases = []
        for number in range(4):
            cases.append(Statement(f"case {number}:;"))
            cases += self.block(depth - 1, 1)
            if self.scope.rng.random() < 0.7:
                cases.append(Statement("break;"))
        return Statement(f"switch ({expression(self.scope, 'u32', 1)} & 3)", cases)

    def block(self, depth: int, count: int) -> list[Statement]:
        rng = self.scope.rng
        out = []
        for _ in range(count):
            pick = rng.random()
            if depth > 0 and pick < 0.15:
                out.append(self.branch(depth))
            elif depth > 0 and pick < 0.22:
                out.append(self.loop(depth))
            elif depth > 0 and pick < 0.26:
                out.append(self.switch(depth))
            elif pick < 0.30:
                out.append(self.array())
            elif pick < 0.33:
                out.append(self.atomic())
            elif pick < 0.36:
                out.append(self.bit_copy())
            else:
                out.append(self.assignment(3))
        return out


def _helper(name: str, rng: random.Random) -> str:
    """A real call: the register and stack conventions are part of what is tested."""
    scope = Scope(rng)
    scope.locals = {"u32": ["a"], "f32": ["b"]}
    text = expression(scope, "u32", 3)
    for kind, (prefix, count) in MEMBERS.items():
        for i in range(count):  # a helper sees its arguments only
            stand_in = {"u32": "a", "u64": "((u64)a << 7)", "f32": "b", "f64": "(f64)b", "f16": "(f16)b"}[
                kind
            ]
            text = text.replace(f"s.{prefix}[{i}]", stand_in)
    text = text.replace("c.table[", "(a ^ ").replace("c.lane", "(a & 63)")
    return f"CALLED_FUNCTION u32 {name}(u32 a, f32 b) {{ return {text}; }}"


def make_function(seed: int, name: str) -> Function:
    """The function of one seed: the same on every machine."""
    rng = random.Random(seed)
    helpers = []
    scope = Scope(rng)
    if rng.random() < 0.15:
        text = _helper(f"{name}_helper", rng)
        if "(a ^ " not in text and "c." not in text:
            helpers = [text]
            scope.helpers = [f"{name}_helper"]
    writer = _Writer(scope)
    phases = [writer.block(2, rng.randint(3, 8)) for _ in range(rng.randint(1, 4))]
    exchanges = [[exchange(rng) for _ in range(rng.randint(1, 3))] for _ in phases[1:]]
    return Function(name, phases, exchanges, helpers)


def unit_source(functions: list[Function]) -> str:
    return '#include "prelude.h"\n\n' + "\n\n".join(function.source() for function in functions) + "\n"
