"""Which shapes are measured: the tables that users compare, and shapes given by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

from flashattn_rocm.profiling.work import ForwardShape

CUSTOM = "custom"


@dataclass(frozen=True)
class Bench:
    """A table: one shape at growing sequence lengths.

    Attributes:
        name: on the command line and in results.
        title: of the table.
        heads: of queries.
        heads_kv: of keys and values.
        head_dim: elements.
        causal: bottom-right aligned.
        seqlens: of queries and keys alike.
        batch: sequences.
    """

    name: str
    title: str
    heads: int
    heads_kv: int
    head_dim: int
    causal: bool
    seqlens: tuple[int, ...]
    batch: int = 1


@dataclass(frozen=True)
class Case:
    """One row of a table."""

    bench: str
    shape: ForwardShape


def _doubling(first: int, last: int) -> tuple[int, ...]:
    return tuple(first << n for n in range((last // first).bit_length()))


FORWARD_BENCHES = (
    Bench("fwd-d64", "Diffusion: B1 H16 D64", 16, 16, 64, False, _doubling(256, 16384)),
    Bench("fwd-d128-gqa", "Language model, GQA: B1 H32/8 D128", 32, 8, 128, True, _doubling(512, 32768)),
    Bench("fwd-d128-mha", "Language model, MHA: B1 H32/32 D128", 32, 32, 128, True, _doubling(512, 32768)),
    Bench("fwd-small-grid", "Small grid: B1 H8 D128", 8, 8, 128, False, (512,)),
)

_QUICK_SEQLENS = {"fwd-d64": (512, 1024), "fwd-d128-gqa": (512, 1024), "fwd-small-grid": (512,)}


def titles() -> dict[str, str]:
    """Title by name of a bench."""
    return {bench.name: bench.title for bench in FORWARD_BENCHES} | {CUSTOM: "Shapes given by hand"}


def bench_cases(
    names: Sequence[str] | None = None,
    seqlens: Sequence[int] | None = None,
    head_dims: Sequence[int] | None = None,
    causal: Sequence[bool] | None = None,
) -> list[Case]:
    """The rows of tables, in their order.

    Args:
        names: of the tables; None: all.
        seqlens: in place of each table's own.
        head_dims: tables of other head dims are left out.
        causal: masks to measure in place of each table's own.
    """
    return [
        Case(bench.name, _shape(bench, seqlen, masked))
        for bench in FORWARD_BENCHES
        if (names is None or bench.name in names) and (head_dims is None or bench.head_dim in head_dims)
        for masked in (causal if causal is not None else (bench.causal,))
        for seqlen in (seqlens if seqlens is not None else bench.seqlens)
    ]


def quick_cases() -> list[Case]:
    """A few short rows that show every kernel."""
    return [case for case in bench_cases() if case.shape.seqlen_q in _QUICK_SEQLENS.get(case.bench, ())]


def parse_shape(text: str) -> Case:
    """Reads a shape given by hand: "B,Sq,Sk,Hq,Hkv,D", and ",causal" behind it or not.

    Raises:
        ValueError: says what is wrong and what is allowed.
    """
    *numbers, last = text.split(",")
    causal = last == "causal"
    try:
        sizes = [int(number) for number in (numbers if causal else [*numbers, last])]
    except ValueError:
        sizes = []
    if len(sizes) != 6 or min(sizes) < 1:
        raise ValueError(
            f"shape {text!r}: allowed is B,Sq,Sk,Hq,Hkv,D or B,Sq,Sk,Hq,Hkv,D,causal, all above 0"
        )
    batch, seqlen_q, seqlen_k, heads, heads_kv, head_dim = sizes
    if heads % heads_kv != 0:
        raise ValueError(f"shape {text!r}: Hq={heads} must be a multiple of Hkv={heads_kv}")
    return Case(CUSTOM, ForwardShape(head_dim, seqlen_q, seqlen_k, batch, heads, heads_kv, causal))


def _shape(bench: Bench, seqlen: int, causal: bool) -> ForwardShape:
    return ForwardShape(bench.head_dim, seqlen, seqlen, bench.batch, bench.heads, bench.heads_kv, causal)
