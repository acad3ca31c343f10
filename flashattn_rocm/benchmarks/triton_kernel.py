"""FlashAttention-2's forward as one writes it in Triton: the rival.

On a card without matrix cores Triton turns ``tl.dot`` into v_dot2_f32_f16 over operands in registers. So the
scores are summed over pieces of the head dimension: a piece of Q and K is live at a time, not all of it.
docs/tuning/triton-rival.md has what was tried.
"""

import triton
import triton.language as tl


@triton.jit
def attention_step(
    acc,
    row_sum,
    row_max,
    q_ptrs,
    k_ptrs,
    v_ptrs,
    rows,
    columns,
    last_seen,
    seqlen_k,
    qk_scale,
    head_dim: tl.constexpr,
    piece: tl.constexpr,
    piece_stages: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    masked: tl.constexpr,
):
    """One block of keys: O, sum and maximum of the rows after it."""
    scores = tl.zeros([block_m, block_n], tl.float32)
    for d in tl.range(0, head_dim, piece, num_stages=piece_stages):
        k = (
            tl.load(k_ptrs + d, mask=columns[None, :] < seqlen_k, other=0.0)
            if masked
            else tl.load(k_ptrs + d)
        )
        q = tl.load(q_ptrs + d, mask=rows[:, None], other=0.0)
        scores = tl.dot(q, k, scores)
    scores *= qk_scale
    if masked:
        scores = tl.where(columns[None, :] <= last_seen[:, None], scores, float("-inf"))
    new_max = tl.maximum(row_max, tl.max(scores, 1))
    # A row that has seen no key yet has no maximum to subtract.
    shift = tl.where(new_max == float("-inf"), 0.0, new_max) if masked else new_max
    p = tl.math.exp2(scores - shift[:, None])
    rescale = tl.math.exp2(row_max - shift)
    row_sum = row_sum * rescale + tl.sum(p, 1)
    acc = acc * rescale[:, None]
    v = tl.load(v_ptrs, mask=columns[:, None] < seqlen_k, other=0.0) if masked else tl.load(v_ptrs)
    return tl.dot(p.to(v.dtype), v, acc), row_sum, new_max


@triton.jit
def attention_forward(
    q_base,
    k_base,
    v_base,
    o_base,
    lse_base,
    qk_scale,  # softmax scale * log2 e
    q_batch,
    q_row,
    q_head,
    k_batch,
    k_row,
    k_head,
    v_batch,
    v_row,
    v_head,
    o_batch,
    o_row,
    o_head,
    seqlen_q,
    seqlen_k,
    heads_q,
    heads_per_kv,
    head_dim: tl.constexpr,
    block_m: tl.constexpr,
    block_n: tl.constexpr,
    piece: tl.constexpr,
    piece_stages: tl.constexpr,
    causal: tl.constexpr,
):
    """Grid: blocks of queries, the last one first; heads times batch."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    head = tl.program_id(1) % heads_q
    batch = (tl.program_id(1) // heads_q).to(tl.int64)
    head_kv = head // heads_per_kv

    row = block * block_m + tl.arange(0, block_m)
    column = tl.arange(0, block_n)
    along_d = tl.arange(0, head_dim)
    along_piece = tl.arange(0, piece)
    q_ptrs = q_base + batch * q_batch + head * q_head + row[:, None] * q_row + along_piece[None, :]
    k_ptrs = k_base + batch * k_batch + head_kv * k_head + column[None, :] * k_row + along_piece[:, None]
    v_ptrs = v_base + batch * v_batch + head_kv * v_head + column[:, None] * v_row + along_d[None, :]
    rows = row < seqlen_q

    acc = tl.zeros([block_m, head_dim], tl.float32)
    row_sum = tl.zeros([block_m], tl.float32)
    row_max = tl.full([block_m], float("-inf"), tl.float32)

    end = seqlen_k
    seen_by_all = seqlen_k
    last_seen = tl.full([block_m], seqlen_k - 1, tl.int32)
    if causal:
        diagonal = seqlen_k - seqlen_q
        end = min(seqlen_k, max(0, (block + 1) * block_m + diagonal))
        seen_by_all = min(seqlen_k, max(0, block * block_m + diagonal + 1))
        last_seen = tl.minimum(last_seen, row + diagonal)
    unmasked = seen_by_all // block_n * block_n

    for _ in tl.range(0, unmasked, block_n, num_stages=1):
        acc, row_sum, row_max = attention_step(
            acc, row_sum, row_max, q_ptrs, k_ptrs, v_ptrs, rows, column, last_seen, seqlen_k,
            qk_scale, head_dim, piece, piece_stages, block_m, block_n, False,
        )  # fmt: skip
        k_ptrs += block_n * k_row
        v_ptrs += block_n * v_row
    for start in tl.range(unmasked, end, block_n, num_stages=1):
        acc, row_sum, row_max = attention_step(
            acc, row_sum, row_max, q_ptrs, k_ptrs, v_ptrs, rows, start + column, last_seen, seqlen_k,
            qk_scale, head_dim, piece, piece_stages, block_m, block_n, True,
        )  # fmt: skip
        k_ptrs += block_n * k_row
        v_ptrs += block_n * v_row

    nothing = row_sum == 0.0
    acc = acc / tl.where(nothing, 1.0, row_sum)[:, None]
    lse = tl.where(nothing, float("-inf"), (row_max + tl.math.log2(row_sum)) * 0.6931471805599453)
    o_ptrs = o_base + batch * o_batch + head * o_head + row[:, None] * o_row + along_d[None, :]
    tl.store(o_ptrs, acc.to(o_base.dtype.element_ty), mask=rows[:, None])
    tl.store(lse_base + (batch * heads_q + head) * seqlen_q + row, lse, mask=rows)
