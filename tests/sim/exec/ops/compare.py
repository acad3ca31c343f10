"""References of v_cmp, v_cmpx and v_cmp_class."""

import operator
from collections.abc import Callable

from tests.sim.exec.formats import Format, order_key
from tests.sim.exec.ops.op import FORMATS

Predicate = Callable[[int, int], bool]

INTEGER_KINDS = ("i16", "u16", "i32", "u32", "i64", "u64")
_RELATIONS: dict[str, Predicate] = {
    "lt": operator.lt,
    "eq": operator.eq,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
INTEGER_PREDICATES: dict[str, Predicate] = {
    "f": lambda a, b: False,
    "t": lambda a, b: True,
    "ne": operator.ne,
    **_RELATIONS,
}


def _ordered(fmt: Format, relation: Predicate) -> Predicate:
    """False when a source is NaN; -0 equals +0."""
    key = order_key(fmt)
    return lambda a, b: not (fmt.is_nan(a) or fmt.is_nan(b)) and relation(key(a), key(b))


def _negated(predicate: Predicate) -> Predicate:
    return lambda a, b: not predicate(a, b)


def float_predicates(kind: str) -> dict[str, Predicate]:
    """All sixteen: the six relations and "ordered", their negations, never and always."""
    fmt = FORMATS[kind]
    plain = {name: _ordered(fmt, relation) for name, relation in _RELATIONS.items()}
    plain["lg"] = _ordered(fmt, operator.ne)
    negated = {f"n{name}": _negated(p) for name, p in plain.items() if name != "eq"}
    return {
        **plain,
        **negated,
        "neq": _negated(plain["eq"]),
        "o": _ordered(fmt, lambda a, b: True),
        "u": _negated(_ordered(fmt, lambda a, b: True)),
        "f": lambda a, b: False,
        "tru": lambda a, b: True,
    }


def classify(fmt: Format, bits: int) -> int:
    """The one bit of v_cmp_class's mask that `bits` belongs to."""
    if fmt.is_nan(bits):
        return 1 << (0 if fmt.is_signalling(bits) else 1)
    if fmt.is_infinite(bits):
        place = 0
    elif fmt.is_zero(bits):
        place = 3
    else:
        place = 2 if fmt.is_denormal(bits) else 1
    return 1 << (2 + place if fmt.is_negative(bits) else 9 - place)
