// The probabilities of a forward, from its log-sum-exp; those that dropout drops are negative. It
// is there for tests and for looking at attention maps: one row a workgroup and one score a lane at
// a time, straight from the definition.
#pragma once

#include "attention/batch_of_grid.h"
#include "attention/block_range.h"
#include "attention/dropout.h"
#include "attention/number.h"
#include "attention/score_changes.h"
#include "attention/work_item.h"
#include "core/attn_probs_args.h"
#include "gcn/wave.h"

namespace flashattn {

template <Element E>
class ProbabilityRow {
 public:
  __device__ explicit ProbabilityRow(const FwdArgs& args)
      : args_(args),
        batch_(batch_of_grid()),
        head_(static_cast<int>(blockIdx.x) / args.seqlen_q),
        row_(static_cast<int>(blockIdx.x) % args.seqlen_q) {}

  __device__ void write(Number<E>* probs) {
    if (batch_ >= args_.batch) return;
    sequence_ = Sequence::of(args_, batch_);
    visible_ = {sequence_.seqlen_q, sequence_.seqlen_k,
                args_.top_left ? 0 : sequence_.seqlen_k - sequence_.seqlen_q, args_.window_left,
                args_.window_right};
    const int64_t line = (int64_t{batch_} * args_.heads_q + head_) * args_.seqlen_q + row_;
    probs += line * args_.seqlen_k;
    const bool exists = row_ < sequence_.seqlen_q;
    const float lse = exists ? log_sum_exp() : -__builtin_inff();
    const int begin = visible_.key_begin(row_), end = visible_.key_end(row_);
#pragma unroll 1
    for (int key = static_cast<int>(threadIdx.x); key < args_.seqlen_k; key += kAttnProbsThreads) {
      const bool seen = lse != -__builtin_inff() && key >= begin && key < end;
      probs[key] = narrow<E>(seen ? probability(key, lse) : 0.0f);
    }
  }

 private:
  // In base 2, as the scores that it meets.
  __device__ float log_sum_exp() const {
    return args_.lse[sequence_.batch * args_.lse_batch_stride + head_ * args_.lse_head_stride +
                     sequence_.first_q + row_] *
           kLog2e;
  }

  __device__ float probability(int key, float lse) const {
    float score[1][1] = {{product(key)}};
    const ScoreChanger<1, 1> change(args_, visible_, batch_, head_, args_.softmax_scale);
    change(score, {row_, key});
    const float p = gcn::exp2(score[0][0] - lse);
    if (args_.dropout.drop == 0) return p;
    const DropoutMask mask(args_.dropout, batch_, head_);
    return mask.keeps(row_, key) ? p : -p;
  }

  __device__ float product(int key) const {
    const int head_kv = head_ / (args_.heads_q / args_.heads_kv);
    const Number<E>* const q = head(args_.q, sequence_.first_q, head_) + row_ * args_.q.row_stride;
    const Number<E>* const k = head(args_.k, sequence_.first_k, head_kv) + key * args_.k.row_stride;
    float sum = 0.0f;
    for (int i = 0; i < args_.head_dim; ++i)
      sum = __builtin_fmaf(widen<E>(q[i]), widen<E>(k[i]), sum);
    return sum;
  }

  __device__ const Number<E>* head(const TensorView& x, int first, int head) const {
    return reinterpret_cast<const Number<E>*>(head_base<E>(x, sequence_.batch, first, head));
  }

  const FwdArgs& args_;
  int batch_, head_, row_;
  Sequence sequence_;
  Visible visible_;
};

template <Element E>
__device__ inline void attn_probs(const AttnProbsArgs& args) {
  ProbabilityRow<E>(args.fwd).write(static_cast<Number<E>*>(args.probs));
}

}  // namespace flashattn
