"""Random expressions over a lane's State, free of undefined behaviour by construction.

Every expression is C++ text of a known type: u32, u64, f32, f64, f16 or bool. Shift counts are
masked, divisors are odd or positive, conversions saturate, and no value depends on the sign or the
payload of a NaN.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

KINDS = ("u32", "u64", "f32", "f64", "f16")
# type -> State member and how many of them there are
MEMBERS = {"u32": ("i", 6), "u64": ("l", 3), "f32": ("f", 4), "f64": ("d", 2), "f16": ("h", 4)}
EDGES_U32 = ("0u", "1u", "31u", "32u", "64u", "255u", "0x7fffffffu", "0x80000000u", "0xffffffffu")
EDGES_F32 = (
    "-0.0f",
    "1.0f",
    "0.5f",
    "-4.0f",
    "0.15915494f",
    "3.5e38f",
    "1e-40f",
    "65504.0f",
    "-2.5f",
)
EDGES_F16 = ("(f16)1.0f", "(f16)-0.5f", "(f16)65504.0f", "(f16)6e-8f", "(f16)4.0f", "(f16)3.25f")


@dataclass
class Scope:
    """What an expression may name: local variables besides the State, and callable helpers."""

    rng: random.Random
    locals: dict[str, list[str]] = field(default_factory=dict)
    helpers: list[str] = field(default_factory=list)


def member(scope: Scope, kind: str) -> str:
    name, count = MEMBERS[kind]
    choices = [f"s.{name}[{i}]" for i in range(count)] + scope.locals.get(kind, []) * 2
    return scope.rng.choice(choices)


def leaf(scope: Scope, kind: str) -> str:
    rng = scope.rng
    if rng.random() < 0.75:
        return member(scope, kind)
    if kind == "u32":
        return rng.choice([*EDGES_U32, f"{rng.getrandbits(32):#x}u", f"{rng.randint(0, 64)}u", "c.lane"])
    if kind == "u64":
        return f"{rng.getrandbits(rng.choice([8, 32, 33, 64])):#x}ull"
    if kind == "f32":
        return rng.choice([*EDGES_F32, f"{rng.uniform(-100, 100):.6g}f"])
    if kind == "f64":
        return f"(f64)({rng.choice(['1e300', '-0.25', '3.0', '1e-310', f'{rng.uniform(-9, 9):.9g}'])})"
    return rng.choice(EDGES_F16)


Rule = Callable[[Scope, int], str]


def _binary(kind: str, template: str) -> Rule:
    return lambda scope, depth: template.format(
        expression(scope, kind, depth), expression(scope, kind, depth)
    )


def _from(template: str, *kinds: str) -> Rule:
    return lambda scope, depth: template.format(*(expression(scope, kind, depth) for kind in kinds))


def _select(kind: str) -> Rule:
    return _from("({} ? {} : {})", "bool", kind, kind)


def _constant_shift(template: str, kind: str, bits: int) -> Rule:
    return lambda scope, depth: template.format(expression(scope, kind, depth), scope.rng.randrange(bits))


def _call_helper(scope: Scope, depth: int) -> str:
    if not scope.helpers:
        return expression(scope, "u32", depth)
    name = scope.rng.choice(scope.helpers)
    return f"{name}({expression(scope, 'u32', depth)}, {expression(scope, 'f32', depth)})"


def _packed(template: str) -> Rule:
    return lambda scope, depth: (
        "word("
        + template.format(
            *(f"halves({expression(scope, 'u32', depth)})" for _ in range(template.count("{}")))
        )
        + ")"
    )


def _packed_float(template: str) -> Rule:
    def rule(scope: Scope, depth: int) -> str:
        pairs = [
            f"(f16x2){{{member(scope, 'f16')}, {expression(scope, 'f16', 0)}}}"
            for _ in range(template.count("{}"))
        ]
        return "float_pair(" + template.format(*pairs) + ")"

    return rule


U = "u32"
U32_RULES: list[Rule] = [
    *(_binary(U, f"({{}} {op} {{}})") for op in ("+", "-", "*", "&", "|", "^", "+", "-", "^")),
    _from("(~{})", U),
    _from("(-({}))", U),
    *(_from(f"({{}} {op} ({{}} & 31))", U, U) for op in ("<<", ">>")),
    _from("(u32)((i32){} >> ({} & 31))", U, U),
    *(_constant_shift(f"({{}} {op} {{}})", U, 32) for op in ("<<", ">>")),
    _constant_shift("(u32)((i32){} >> {})", U, 32),
    _constant_shift("rotate({}, {})", U, 32),
    _from("rotate({}, {})", U, U),
    _from("funnel({}, {}, {})", U, U, U),
    _from("mul_high({}, {})", U, U),
    _from("mul_high_signed({}, {})", U, U),
    _from("(({} & 0xffffff) * ({} & 0xffffff) + {})", U, U, U),
    _from("divide<u32>({}, {})", U, U),
    _from("remainder<u32>({}, {})", U, U),
    _from("(u32)((i32){} / (i32)(({} & 0x7fffffff) | 1))", U, U),
    _from("(u32)((i32){} % (i32)(({} & 0xffff) | 1))", U, U),
    _from("(({} & 0xffff) * ({} >> 16))", U, U),
    _from("(u32)((i32)(i16){} * (i32)(i16){})", U, U),
    _from("(u32)(i32)(i8){}", U),
    _from("(u32)(i32)(i16){}", U),
    _from("(({} >> 8) & 255)", U),
    _from("(u32)__builtin_popcount({})", U),
    _from("(u32)__builtin_popcountll({})", "u64"),
    _from("(u32)__builtin_clz({} | 1)", U),
    _from("(u32)__builtin_ctz({} | 0x80000000u)", U),
    _from("(u32)__builtin_clzll({} | 1)", "u64"),
    _from("(u32)__builtin_ctzll({} | (1ull << 63))", "u64"),
    _from("__builtin_bitreverse32({})", U),
    _from("__builtin_bswap32({})", U),
    _from("__builtin_elementwise_min({}, {})", U, U),
    _from("__builtin_elementwise_max({}, {})", U, U),
    _from("(u32)__builtin_elementwise_min((i32){}, (i32){})", U, U),
    _from("(u32)__builtin_elementwise_max((i32){}, (i32){})", U, U),
    _from("__builtin_elementwise_add_sat({}, {})", U, U),
    _from("__builtin_elementwise_sub_sat({}, {})", U, U),
    _from("(u32)__builtin_elementwise_add_sat((i32){}, (i32){})", U, U),
    _from("(u32)__builtin_elementwise_add_sat((u16){}, (u16){})", U, U),
    _from("(u32)(u16)((u16){} + (u16){})", U, U),
    _from("(u32)(u16)((u16){} * (u16){})", U, U),
    _from("(u32)(u16)((u16){} >> ({} & 15))", U, U),
    _from("(u32)(i16)((i16){} >> ({} & 15))", U, U),
    _from("permute_bytes({}, {}, {})", U, U, U),
    _constant_shift("permute_bytes({0}, {0} * 3, 0x0703{1:02x}02u)", U, 256),
    _from("dot_bytes({}, {}, {})", U, U, U),
    _packed("({} + {})"),
    _packed("({} - {})"),
    _packed("({} * {} + {})"),
    _packed("({} >> ({} & (u16)15))"),
    _packed("__builtin_elementwise_max({}, {})"),
    _from("signed_min({}, {})", U, U),
    _packed_float("({} + {})"),
    _packed_float("({} * {})"),
    _packed_float("({} * {} - {})"),
    _from("(u32){}", "u64"),
    _from("(u32)({} >> 32)", "u64"),
    _from("(u32)({} ? 1 : 0)", "bool"),
    _from("to_i32({})", "f32"),
    _from("to_u32({})", "f32"),
    _from("to_i32({})", "f64"),
    _from("to_i16({})", "f16"),
    _from("bits({})", "f32"),
    _from("bits({})", "f16"),
    _from("c.table[{} & 255]", U),
    _from("read_byte(c.table, {} & 1023)", U),
    _from("read_signed_byte(c.table, {} & 1023)", U),
    _from("read_short(c.table, {} & 511)", U),
    _call_helper,
    _select(U),
    _select(U),
]

U64_RULES: list[Rule] = [
    *(_binary("u64", f"({{}} {op} {{}})") for op in ("+", "-", "*", "&", "|", "^", "+", "-")),
    _from("(~{})", "u64"),
    *(_from(f"({{}} {op} ({{}} & 63))", "u64", U) for op in ("<<", ">>")),
    _from("(u64)((i64){} >> ({} & 63))", "u64", U),
    _constant_shift("({} << {})", "u64", 64),
    _constant_shift("(u64)((i64){} >> {})", "u64", 64),
    _from("rotate({}, (u64){})", "u64", U),
    _from("((u64){} * {})", U, U),
    _from("(u64)((i64)(i32){} * (i32){})", U, U),
    _from("((u64){} * {} + {})", U, U, "u64"),
    _from("((u64){} << 32 | {})", U, U),
    _from("(u64)(i64)(i32){}", U),
    _from("divide<u64>({}, {})", "u64", U),
    _from("remainder<u64>({}, {})", "u64", "u64"),
    _from("__builtin_elementwise_min({}, {})", "u64", "u64"),
    _from("(u64)__builtin_elementwise_max((i64){}, (i64){})", "u64", "u64"),
    _from("bits({})", "f64"),
    _from("to_u64({})", "f64"),
    _select("u64"),
]

F32_RULES: list[Rule] = [
    *(_binary("f32", f"({{}} {op} {{}})") for op in ("+", "*", "+", "*", "/")),
    _binary("f32", "subtract<f32>({}, {})"),
    _from("(-({}))", "f32"),
    _from("__builtin_fabsf({})", "f32"),
    _from("__builtin_fmaf({}, {}, {})", "f32", "f32", "f32"),
    _from("__builtin_fmaf(-({}), {}, __builtin_fabsf({}))", "f32", "f32", "f32"),
    _from("__builtin_fmaf((f32){}, (f32){}, {})", "f16", "f16", "f32"),
    _from("__builtin_sqrtf(__builtin_fabsf({}))", "f32"),
    _from("__builtin_floorf({})", "f32"),
    _from("__builtin_ceilf({})", "f32"),
    _from("__builtin_truncf({})", "f32"),
    _from("__builtin_rintf({})", "f32"),
    _from("min_float({}, {})", "f32", "f32"),
    _from("max_float({}, {})", "f32", "f32"),
    _from("min_float(max_float({}, 0.0f), 1.0f)", "f32"),
    _from("median({}, {}, {})", "f32", "f32", "f32"),
    _from("with_sign({}, {})", "f32", "f32"),
    _from("__builtin_ldexpf({}, (i32)({} & 511) - 256)", "f32", U),
    _from("(f32)(i32){}", U),
    _from("(f32){}", U),
    _from("(f32)(u8)({} >> 16)", U),
    _from("(f32){}", "u64"),
    _from("(f32){}", "f16"),
    _from("(f32){}", "f64"),
    _from("from_bits32({})", U),
    _select("f32"),
    _select("f32"),
]

F64_RULES: list[Rule] = [
    *(_binary("f64", f"({{}} {op} {{}})") for op in ("+", "*", "/")),
    _binary("f64", "subtract<f64>({}, {})"),
    _from("(-({}))", "f64"),
    _from("__builtin_fabs({})", "f64"),
    _from("__builtin_fma({}, {}, {})", "f64", "f64", "f64"),
    _from("__builtin_sqrt(__builtin_fabs({}))", "f64"),
    _from("__builtin_floor({})", "f64"),
    _from("__builtin_rint({})", "f64"),
    _from("__builtin_trunc({})", "f64"),
    _from("min_float({}, {})", "f64", "f64"),
    _from("max_float({}, {})", "f64", "f64"),
    _from("__builtin_ldexp({}, (i32)({} & 2047) - 1024)", "f64", U),
    _from("(f64){}", "f32"),
    _from("(f64)(i32){}", U),
    _from("(f64){}", U),
    _from("(f64){}", "u64"),
    _select("f64"),
]

F16_RULES: list[Rule] = [
    *(_binary("f16", f"({{}} {op} {{}})") for op in ("+", "*", "+", "*")),
    _binary("f16", "subtract<f16>({}, {})"),
    _from("negate({})", "f16"),
    _from("narrow({})", "f32"),
    _from("narrow(__builtin_fmaf({}, {}, {}))", "f16", "f16", "f16"),
    _from("narrow(__builtin_fmaf({}, {}, {}))", "f16", "f32", "f32"),
    _from("(f16)(i16){}", U),
    _from("(f16)(u16){}", U),
    _from("min_float({}, {})", "f16", "f16"),
    _from("max_float({}, {})", "f16", "f16"),
    _from("from_bits16({})", U),
    _select("f16"),
]

BOOL_RULES: list[Rule] = [
    *(
        _binary(kind, f"({{}} {op} {{}})")
        for kind in (U, "u64", "f32")
        for op in ("<", "==", ">=", "!=", ">")
    ),
    *(_binary(kind, f"({{}} {op} {{}})") for kind in ("f64", "f16") for op in ("<", "==", ">=", "!=")),
    *(_from(f"((i32){{}} {op} (i32){{}})", U, U) for op in ("<", ">=")),
    _from("((i64){} < (i64){})", "u64", "u64"),
    _from("(!({} <= {}))", "f32", "f32"),
    _from("__builtin_isnan({})", "f32"),
    _from("__builtin_isinf({})", "f32"),
    _from("__builtin_isunordered({}, {})", "f32", "f32"),
    _from("({} && {})", "bool", "bool"),
    _from("({} || {})", "bool", "bool"),
    _from("({} & 1)", U),
]

RULES = {
    "u32": U32_RULES,
    "u64": U64_RULES,
    "f32": F32_RULES,
    "f64": F64_RULES,
    "f16": F16_RULES,
    "bool": BOOL_RULES,
}
_LEAF_SHARE = 0.2


def expression(scope: Scope, kind: str, depth: int) -> str:
    """A random expression of type `kind`, at most `depth` operators deep."""
    if kind != "bool" and (depth <= 0 or scope.rng.random() < _LEAF_SHARE):
        return leaf(scope, kind)
    if kind == "bool" and depth <= 0:
        return f"({leaf(scope, 'u32')} < {leaf(scope, 'u32')})"
    return scope.rng.choice(RULES[kind])(scope, depth - 1)
