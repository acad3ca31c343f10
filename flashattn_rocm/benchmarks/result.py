"""One row of a benchmark: the figures, and what follows from them."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from flashattn_rocm.benchmarks.device import Measurement
from flashattn_rocm.benchmarks.shapes import Case


@dataclass(frozen=True)
class Result:
    """An implementation on a case; the fields are the keys of the JSON. None: the device cannot tell.

    Attributes:
        bench: name of the table.
        impl: name of the implementation.
        backend: "sim" or "hip".
        dtype: of q, k, v and out.
        batch: sequences.
        seqlen_q: queries.
        seqlen_k: keys.
        heads_q: of queries.
        heads_kv: of keys and values.
        head_dim: elements.
        causal: bottom-right aligned.
        cycles: clocks of the compute units.
        ms: milliseconds.
        tflops: useful; a fused multiply-add counts as two, and masked scores do not count.
        valu_busy: per cent.
        hbm_read_bytes: of the launch.
        hbm_write_bytes: of the launch.
        floor_bytes: that any algorithm reads: Q, K and V once.
        tile: what the implementation chose.
    """

    bench: str
    impl: str
    backend: str
    dtype: str
    batch: int
    seqlen_q: int
    seqlen_k: int
    heads_q: int
    heads_kv: int
    head_dim: int
    causal: bool
    cycles: float | None
    ms: float
    tflops: float
    valu_busy: float | None
    hbm_read_bytes: int | None
    hbm_write_bytes: int | None
    floor_bytes: int
    tile: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON and CSV."""
        return dataclasses.asdict(self)


@dataclass(frozen=True)
class Row:
    """A result with what tables show beside it.

    Attributes:
        result: the figures.
        peak_tflops: fp16 peak of the card's vector ALUs.
        sampling_error: relative, of the time; None where nothing is sampled.
    """

    result: Result
    peak_tflops: float
    sampling_error: float | None

    @property
    def share_of_peak(self) -> float:
        """Useful TFLOPS over the peak."""
        return self.result.tflops / self.peak_tflops

    @property
    def reads_over_floor(self) -> float | None:
        """Bytes read from HBM over the floor."""
        read = self.result.hbm_read_bytes
        return None if read is None else read / self.result.floor_bytes


def make_row(case: Case, impl: str, backend: str, tile: str, measured: Measurement) -> Row:
    """The row of one measurement on fp16 tensors."""
    shape = case.shape
    work = shape.work()
    assert work.read_bytes is not None
    result = Result(
        bench=case.bench,
        impl=impl,
        backend=backend,
        dtype="fp16",
        batch=shape.batch,
        seqlen_q=shape.seqlen_q,
        seqlen_k=shape.seqlen_k,
        heads_q=shape.heads,
        heads_kv=shape.heads_kv,
        head_dim=shape.head_dim,
        causal=shape.causal,
        cycles=measured.cycles,
        ms=measured.ms,
        tflops=work.useful_flop / (measured.ms * 1e-3) / 1e12,
        valu_busy=measured.valu_busy,
        hbm_read_bytes=measured.hbm_read_bytes,
        hbm_write_bytes=measured.hbm_write_bytes,
        floor_bytes=work.read_bytes,
        tile=tile,
    )
    return Row(result, measured.peak_tflops, measured.sampling_error)
