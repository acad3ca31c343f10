"""What a launch has to do at least: useful operations, and the bytes that must cross HBM once."""

from dataclasses import dataclass

from flashattn_rocm.profiling.profile import FP16_FLOP_PER_LANE_CLOCK, FP32_FLOP_PER_LANE_CLOCK


@dataclass(frozen=True)
class Work:
    """The algorithm's share of a launch.

    Attributes:
        useful_flop: a fused multiply-add counts as two.
        read_bytes: that must come from HBM at least once; None where unknown.
        write_bytes: that must go to HBM; None where unknown.
        flop_per_lane_clock: of the peak to compare with.
        peak_name: of that peak.
    """

    useful_flop: float
    read_bytes: int | None = None
    write_bytes: int | None = None
    flop_per_lane_clock: int = FP16_FLOP_PER_LANE_CLOCK
    peak_name: str = "fp16 dot2"


@dataclass(frozen=True)
class ForwardShape:
    """A forward of attention, or its backward."""

    head_dim: int
    seqlen_q: int
    seqlen_k: int
    batch: int
    heads: int
    heads_kv: int
    causal: bool

    def visible_pairs(self) -> int:
        """(query, key) pairs of one head whose score is needed; bottom-right aligned if causal."""
        if not self.causal:
            return self.seqlen_q * self.seqlen_k
        last = self.seqlen_k - self.seqlen_q  # key index that query 0 sees last
        first_row = max(0, -last)  # queries before it see no key
        rows = self.seqlen_q - first_row
        first = first_row + last + 1  # keys that row first_row sees
        return rows * (2 * first + rows - 1) // 2 if rows > 0 else 0

    def work(self, fp32: bool = False) -> Work:
        """Q K^T and P V for the visible pairs; Q, K, V read once, O and LSE written once.

        Args:
            fp32: tensors of float32 in place of 16-bit numbers.
        """
        single = 4
        element = single if fp32 else 2
        q_elements = self.batch * self.seqlen_q * self.heads * self.head_dim
        kv_elements = self.batch * self.seqlen_k * self.heads_kv * self.head_dim
        lse_elements = self.batch * self.heads * self.seqlen_q
        return Work(
            useful_flop=4.0 * self.batch * self.heads * self.head_dim * self.visible_pairs(),
            read_bytes=element * (q_elements + 2 * kv_elements),
            write_bytes=element * q_elements + single * lse_elements,
            flop_per_lane_clock=FP32_FLOP_PER_LANE_CLOCK if fp32 else FP16_FLOP_PER_LANE_CLOCK,
            peak_name="fp32 fma" if fp32 else "fp16 dot2",
        )

    def backward_work(self, launch: str) -> Work:
        """Of a launch of the backward, each tensor read or written once.

        Its products are S, dP and dQ ("dq"), or S, dP, dV and dK ("dkdv"): seven, where five would do if one
        launch gave all gradients; backward_flop counts those five.
        """
        half, single = 2, 4
        q_elements = self.batch * self.seqlen_q * self.heads * self.head_dim
        kv_elements = self.batch * self.seqlen_k * self.heads_kv * self.head_dim
        rows = self.batch * self.heads * self.seqlen_q
        read = {"dq": 3 * q_elements + 2 * kv_elements, "dkdv": 2 * q_elements + 2 * kv_elements}[launch]
        written = {"dq": half * q_elements + 2 * single * rows, "dkdv": 2 * half * kv_elements}[launch]
        return Work(
            useful_flop={"dq": 3, "dkdv": 4}[launch] * self.backward_flop / 5,
            read_bytes=half * read + single * rows * (1 if launch == "dq" else 2),
            write_bytes=written,
        )

    @property
    def backward_flop(self) -> float:
        """Of the five products of a backward, 2.5 times the forward's."""
        return 2.5 * self.work().useful_flop
