"""The regression guard: figures of chosen launches on the simulated card, compared with recorded ones.

Simulated cycles repeat exactly. So with the same compiler a change of a row is a change of the kernel, of the
choice of kernel or of the timing model.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

import flashattn_rocm._C as _C
from flashattn_rocm.benchmarks.decode import DecodeShape, decode_step
from flashattn_rocm.benchmarks.implementations import Ours, make_inputs
from flashattn_rocm.benchmarks.shapes import parse_shape
from flashattn_rocm.benchmarks.static_mix import InnerLoop, disassemble, inner_loop
from flashattn_rocm.manifest import read_manifest
from flashattn_rocm.profiling.profile import Profile, longest, timed_launches

TOLERANCE = 0.02  # of a figure that may get worse

# All head dims, both masks, a small grid, a ragged end; about a second each.
SHAPES = (
    "1,256,256,2,2,32,causal",
    "1,512,512,16,16,64",
    "1,512,512,8,8,64,causal",
    "1,512,512,8,8,128",
    "1,500,500,32,8,128,causal",
)
# Of the backward, whose launches have a row each.
BACKWARD_SHAPES = ("1,256,256,8,8,64", "1,256,256,8,8,128")
BACKWARD_LAUNCHES = ("dq", "dkdv")
# Of decode: its tiles, pages, and a cache of bytes; both launches of a call are a row.
DECODE_SHAPES = (
    DecodeShape(1, 2048, 8, 4, 128),
    DecodeShape(1, 2048, 8, 8, 128, page_size=16),
    DecodeShape(1, 2048, 8, 8, 128, kv_format="int8"),
    DecodeShape(1, 2048, 8, 8, 256, kv_format="e4m3"),
    DecodeShape(1, 1024, 1, 16, 576, 64, latent=True),
)


@dataclass(frozen=True)
class RecordRow:
    """One launch.

    Attributes:
        shape: as on the command line of scripts/benchmark.py; for a launch of the backward with its name,
            for decode as name_of_decode() has it.
        kernel: that was dispatched.
        cycles: simulated.
        vgprs: of a lane.
        lds_bytes: of a workgroup.
        inner_loop: static counts of one trip.
    """

    shape: str
    kernel: str
    cycles: int
    vgprs: int
    lds_bytes: int
    inner_loop: InnerLoop


@dataclass(frozen=True)
class Record:
    """What is compared with.

    Attributes:
        compiler: that built the kernels; another one makes other code.
        rows: one for each shape.
    """

    compiler: str
    rows: tuple[RecordRow, ...]


def compiler() -> str:
    """That built the kernels of this package."""
    return read_manifest()["compiler"]


def measure(shapes: Sequence[str] = SHAPES) -> list[RecordRow]:
    """Runs the shapes on the simulated card, every workgroup on the clock.

    Raises:
        RuntimeError: the package was built without the simulator.
    """
    code = disassemble(Path(_C.kernels_path))
    rows = []
    for text in shapes:
        shape = parse_shape(text).shape
        with (
            Ours().prepared(make_inputs(shape, "cpu"), shape.causal) as forward,
            timed_launches() as launches,
        ):
            forward()
        rows.append(_row(text, launches, code))
    return rows


def measure_backward(shapes: Sequence[str] = BACKWARD_SHAPES) -> list[RecordRow]:
    """The same of backwards, a row for each launch.

    Raises:
        RuntimeError: the package was built without the simulator.
    """
    code = disassemble(Path(_C.kernels_path))
    rows = []
    for text in shapes:
        shape = parse_shape(text).shape
        inputs = make_inputs(shape, "cpu")
        out, lse = torch.ops.flashattn_rocm.fwd(*inputs, None, shape.causal)
        with timed_launches() as launches:
            torch.ops.flashattn_rocm.bwd(out, *inputs, out, lse, None, shape.causal)
        for name, launch in zip(BACKWARD_LAUNCHES, launches, strict=True):
            rows.append(_row(f"{text} {name}", [launch], code))
    return rows


def name_of_decode(shape: DecodeShape) -> str:
    """Batch, keys, key heads, GQA ratio, head_dim, and the cache."""
    sizes = (shape.batch, shape.seqlen_k, shape.heads_kv, shape.ratio, shape.head_dim)
    pages = f" pages of {shape.page_size}" if shape.page_size else ""
    return f"decode {','.join(map(str, sizes))} {shape.kv_format}{pages}"


def measure_decode(shapes: Sequence[DecodeShape] = DECODE_SHAPES) -> list[RecordRow]:
    """The same of steps of decoding, a row for all launches of each.

    Raises:
        RuntimeError: the package was built without the simulator.
    """
    code = disassemble(Path(_C.kernels_path).with_name("decode.hipfb"))
    rows = []
    for shape in shapes:
        step = decode_step(shape, "cpu")
        with timed_launches() as launches:
            step()
        rows.append(_row(name_of_decode(shape), launches, code))
    return rows


def _row(name: str, launches: Sequence[Profile], code: Mapping[str, list[tuple[int, str, str]]]) -> RecordRow:
    """Of all launches together, and the kernel of the longest."""
    main = longest(launches)
    cycles = round(sum(launch.clocks for launch in launches))
    return RecordRow(name, main.kernel, cycles, main.vgprs, main.lds_bytes, inner_loop(code[main.kernel]))


def regressions(recorded: Sequence[RecordRow], now: Sequence[RecordRow]) -> list[str]:
    """A sentence for each row that is missing in the record or got worse by more than TOLERANCE.

    Cycles count always. The mix of the inner loop counts where both are the same kernel: that of another tile
    may differ and still be faster.
    """
    by_shape = {row.shape: row for row in recorded}
    found = []
    for row in now:
        old = by_shape.get(row.shape)
        if old is None:
            found.append(f"{row.shape}: not in the record")
            continue
        if row.cycles > old.cycles * (1 + TOLERANCE):
            found.append(
                f"{row.shape}: {old.cycles:,} cycles by {_about(old)} became {row.cycles:,} by "
                f"{_about(row)}, {row.cycles / old.cycles - 1:+.1%}; allowed is {TOLERANCE:+.0%}"
            )
        before, after = old.inner_loop.dot2_share, row.inner_loop.dot2_share
        if row.kernel == old.kernel and after < before * (1 - TOLERANCE):
            found.append(
                f"{row.shape}: dot2 is {after:.1%} of the inner loop of {row.kernel}, was {before:.1%} "
                f"({old.inner_loop} became {row.inner_loop})"
            )
    return found


def _about(row: RecordRow) -> str:
    return f"{row.kernel} ({row.vgprs} VGPRs, {row.lds_bytes} bytes of LDS)"


def write_record(record: Record, path: Path) -> None:
    """Writes the record as JSON."""
    path.write_text(json.dumps(asdict(record), indent=1) + "\n")


def read_record(path: Path) -> Record:
    """Reads what write_record wrote.

    Raises:
        OSError, ValueError, TypeError, KeyError: it is missing or is no such file.
    """
    raw = json.loads(path.read_text())
    rows = tuple(RecordRow(**{**row, "inner_loop": InnerLoop(**row["inner_loop"])}) for row in raw["rows"])
    return Record(raw["compiler"], rows)
