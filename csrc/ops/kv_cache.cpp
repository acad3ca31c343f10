#include "ops/kv_cache.h"

#include <cstdlib>
#include <string_view>
#include <utility>

#include "ops/decode_plan.h"
#include "ops/views.h"

namespace flashattn {
namespace {

KvFormat format_of(const at::Tensor& cache) {
  switch (cache.scalar_type()) {
    case at::kChar:
      return KvFormat::int8;
    case at::kFloat8_e4m3fn:
      return KvFormat::e4m3;
    case at::kFloat8_e5m2:
      return KvFormat::e5m2;
    default:
      return KvFormat::plain;
  }
}

bool of_bytes(const at::Tensor& cache) { return format_of(cache) != KvFormat::plain; }

void check_same(const at::Tensor& q, const char* name, const at::Tensor& cache) {
  TORCH_CHECK_TYPE(cache.scalar_type() == q.scalar_type() || of_bytes(cache),
                   "query and key must have the same dtype: q has ", dtype_name(q), ", ", name,
                   " has ", dtype_name(cache),
                   "; allowed are also torch.int8, torch.float8_e4m3fn and torch.float8_e5m2 with "
                   "scales");
  TORCH_CHECK_TYPE(!of_bytes(cache) || q.scalar_type() == at::kHalf, "a ", dtype_name(cache),
                   " cache is served for torch.float16 queries; q has ", dtype_name(q));
  TORCH_CHECK_VALUE(
      cache.dim() == 4, name,
      " must have shape (batch_size_cache, seqlen_cache, num_heads_k, head_size), or "
      "(num_blocks, page_block_size, num_heads_k, head_size) with block_table; it has "
      "shape ",
      shape_name(cache));
  TORCH_CHECK_VALUE(cache.sym_numel() == 0 || cache.sym_stride(-1) == 1, name,
                    " must have contiguous last dimension; its stride is ", cache.sym_stride(-1));
}

void check_table(const at::Tensor& table, const c10::SymInt& batch) {
  TORCH_CHECK_TYPE(table.scalar_type() == at::kInt,
                   "block_table must have dtype torch.int32; it has ", dtype_name(table));
  TORCH_CHECK_VALUE(table.dim() == 2 && table.sym_size(0) == batch,
                    "block_table must have shape (batch_size, max_num_blocks_per_seq) = (", batch,
                    ", ...); it has shape ", shape_name(table));
  TORCH_CHECK_VALUE(table.sym_numel() == 0 || table.sym_stride(-1) == 1,
                    "block_table must have contiguous last dimension");
}

void check_scale(const char* name, const OptionalTensor& scale, const at::Tensor& cache) {
  TORCH_CHECK_VALUE(
      scale.has_value() == of_bytes(cache), name,
      scale ? " is for an int8 or float8 cache; this one has " : " must be given with a cache of ",
      dtype_name(cache));
  if (!scale) return;
  TORCH_CHECK_TYPE(scale->scalar_type() == at::kFloat, name,
                   " must have dtype torch.float32; it has ", dtype_name(*scale));
  const bool of_rows = scale->sym_sizes() == cache.sym_sizes().slice(0, 3);
  const bool of_all = scale->dim() <= 1 && scale->sym_numel() == 1 && cache.is_floating_point();
  TORCH_CHECK_VALUE(of_rows || of_all, name,
                    " must have the shape of the cache without its last dimension, which is ",
                    shape_name(cache), ", or for a float8 cache one element; it has shape ",
                    shape_name(*scale));
}

KvScales view_of_scale(const OptionalTensor& scale) {
  if (!scale) return {};
  KvScales view{};
  view.data = static_cast<float*>(const_cast<void*>(scale->const_data_ptr()));
  if (scale->dim() != 3) return view;  // one for all
  view.item_stride = scale->stride(0);
  view.row_stride = scale->stride(1);
  view.head_stride = scale->stride(2);
  return view;
}

// Of formats that have kernels for whole chunks alone. A step of 16 keys is addressed by 31 bits.
void check_alignment(const char* name, const at::Tensor& cache) {
  constexpr int64_t kAligned = 4, kMostBetweenKeys = 1 << 22;  // bytes
  const auto item = static_cast<int64_t>(cache.element_size());
  bool aligned = cache.sym_storage_offset() * item % kAligned == 0;
  for (const int64_t dim : {0, 1, 2}) {
    aligned = aligned && (cache.sym_size(dim) <= 1 || cache.sym_stride(dim) * item % kAligned == 0);
  }
  TORCH_CHECK_VALUE(aligned && cache.sym_stride(1) * item <= kMostBetweenKeys,
                    "rows of this cache must begin at multiples of ", kAligned,
                    " bytes, those of a head at most ", kMostBetweenKeys, " bytes apart; ", name,
                    " has strides ", cache.sym_strides(), " and storage offset ",
                    cache.sym_storage_offset(), " in ", dtype_name(cache));
}

void check_bytes(const char* name, const at::Tensor& cache) {
  constexpr int64_t kChunk = 8;
  const int most = max_decode_columns(format_of(cache));
  TORCH_CHECK_VALUE(cache.sym_size(3) % kChunk == 0 && cache.sym_size(3) <= most, "a ",
                    dtype_name(cache), " cache must have a head_dim that is a multiple of ", kChunk,
                    " and at most ", most, "; ", name, " has shape ", shape_name(cache));
  check_alignment(name, cache);
}

void check_pages(const CacheInputs& in) {
  const c10::SymInt page = in.k_cache.sym_size(1);
  TORCH_CHECK_VALUE(page > 0 && page % kPageMultiple == 0,
                    "Paged KV cache block size must be divisible by ", kPageMultiple,
                    ": k_cache has ", page, " keys a page (shape ", shape_name(in.k_cache), ")");
  // CacheRows divides by a reciprocal.
  TORCH_CHECK_VALUE(in.capacity() * page < int64_t{1} << 40, "block_table has room for ",
                    in.capacity(), " keys in pages of ", page,
                    "; their product must be below 2^40");
  TORCH_CHECK_VALUE(!in.batch_idx,
                    "Paged KVcache does not support cache_batch_idx: give block_table its rows");
  TORCH_CHECK_VALUE(!in.leftpad,
                    "We don't support Paged KV and leftpad_k running at the same time yet: "
                    "cache_leftpad and block_table are both given");
}

// int32 numbers in host memory.
class Numbers {
 public:
  explicit Numbers(const OptionalTensor& tensor)
      : host_(tensor ? tensor->cpu().contiguous() : at::Tensor()) {}
  explicit operator bool() const { return host_.defined(); }
  int64_t operator[](int64_t i) const { return host_.const_data_ptr<int32_t>()[i]; }
  int64_t count() const { return host_.defined() ? host_.numel() : 0; }

 private:
  at::Tensor host_;
};

// By FLASHATTN_ROCM_CHECK_INDICES if it is 0 or 1, else where it costs no wait for a card.
bool wants_check(const at::Tensor& cache) {
  const char* value = std::getenv("FLASHATTN_ROCM_CHECK_INDICES");
  const std::string_view wanted = value == nullptr ? "" : value;
  return wanted == "1" || (wanted != "0" && cache.is_cpu());
}

void check_within(const char* name, const Numbers& numbers, int64_t most, const char* what) {
  for (int64_t i = 0; i < numbers.count(); ++i) {
    TORCH_CHECK_VALUE(numbers[i] >= 0 && numbers[i] <= most, name, "[", i, "]=", numbers[i],
                      " must be between 0 and ", most, ", ", what);
  }
}

void check_pages_of(const OptionalTensor& block_table, int64_t row, int64_t pages, int64_t items) {
  const Numbers used(block_table->select(0, row).slice(0, 0, pages));
  for (int64_t page = 0; page < used.count(); ++page) {
    TORCH_CHECK_VALUE(used[page] >= 0 && used[page] < items, "block_table[", row, ", ", page,
                      "]=", used[page], " is no page of the cache, which has ", items);
  }
}

}  // namespace

KvFormat CacheInputs::format() const { return format_of(k_cache); }

bool CacheInputs::rows_of_chunks() const {
  if (of_bytes(k_cache)) return true;  // or check() refuses it
  return has_rows_of_chunks(k_cache) && has_rows_of_chunks(v_cache);
}

bool CacheInputs::latent() const {
  return k_cache.dim() == 4 && v_cache.dim() == 4 && k_cache.sym_size(3) == kLatent + kRope &&
         v_cache.sym_size(3) == kLatent && v_cache.is_alias_of(k_cache) &&
         v_cache.sym_storage_offset() == k_cache.sym_storage_offset() &&
         v_cache.sym_strides() == k_cache.sym_strides();
}

c10::SymInt CacheInputs::capacity() const {
  return paged() ? block_table->sym_size(1) * k_cache.sym_size(1) : k_cache.sym_size(1);
}

void CacheInputs::check(const at::Tensor& q, const c10::SymInt& batch) const {
  check_same(q, "k_cache", k_cache);
  check_same(q, "v_cache", v_cache);
  TORCH_CHECK_TYPE(k_cache.scalar_type() == v_cache.scalar_type(),
                   "k_cache and v_cache must have the same dtype: ", dtype_name(k_cache), " and ",
                   dtype_name(v_cache));
  if (of_bytes(k_cache)) {
    check_bytes("k_cache", k_cache);
    check_bytes("v_cache", v_cache);
  }
  if (latent()) check_alignment("k_cache", k_cache);
  check_scale("k_scale", k_scale, k_cache);
  check_scale("v_scale", v_scale, v_cache);
  for (const int64_t dim : {0, 1, 2}) {
    TORCH_CHECK_VALUE(k_cache.sym_size(dim) == v_cache.sym_size(dim),
                      "k_cache and v_cache must have the same sizes but the last: ",
                      shape_name(k_cache), " and ", shape_name(v_cache));
  }
  if (block_table) check_table(*block_table, batch);
  if (paged()) check_pages(*this);
  if (seqlens) check_index("cache_seqlens", *seqlens, batch);
  if (batch_idx) check_index("cache_batch_idx", *batch_idx, batch);
  if (leftpad) check_index("cache_leftpad", *leftpad, batch);
  TORCH_CHECK_VALUE(paged() || batch_idx || k_cache.sym_size(0) == batch, "k_cache holds ",
                    k_cache.sym_size(0), " sequences and q ", batch,
                    "; they must be as many, or cache_batch_idx say which belong together");
  TORCH_CHECK_VALUE(capacity() <= kMaxSeqlen, "the cache has room for ", capacity(),
                    " keys a sequence; allowed is at most ", kMaxSeqlen);
}

void CacheInputs::check_values() const {
  if (!wants_check(k_cache)) return;
  const int64_t room = capacity().expect_int(), added = seqlen_new.expect_int();
  const int64_t items = k_cache.size(0);
  const Numbers lengths(seqlens);
  for (int64_t i = 0; i < lengths.count(); ++i) {
    TORCH_CHECK_VALUE(
        lengths[i] >= 0 && lengths[i] + added <= room, "cache_seqlens[", i, "]=", lengths[i],
        " with ", added, " new keys does not fit the cache, whose capacity is ", room,
        paged() ? " keys a sequence (pages in block_table times their size)" : " keys a sequence");
  }
  check_within("cache_batch_idx", Numbers(batch_idx), items - 1, "the last sequence of the cache");
  check_within("cache_leftpad", Numbers(leftpad), room, "the capacity of the cache");
  if (!paged()) return;
  const int64_t page = k_cache.size(1);
  for (int64_t b = 0; b < block_table->size(0); ++b) {
    const int64_t keys = lengths ? lengths[b] + added : room;
    check_pages_of(block_table, b, (keys + page - 1) / page, items);
  }
}

KvCache CacheInputs::view() const {
  const auto numbers = [](const OptionalTensor& tensor) {
    return tensor ? tensor->const_data_ptr<int32_t>() : nullptr;
  };
  KvCache cache{};
  cache.k = view_of(k_cache);
  cache.v = view_of(v_cache);
  cache.k_scale = view_of_scale(k_scale);
  cache.v_scale = view_of_scale(v_scale);
  cache.block_table = numbers(block_table);
  cache.batch_idx = numbers(batch_idx);
  cache.seqlens = numbers(seqlens);
  cache.leftpad = numbers(leftpad);
  cache.items = static_cast<int32_t>(k_cache.size(0));
  cache.capacity = static_cast<int32_t>(capacity().expect_int());
  cache.page_size = static_cast<int32_t>(k_cache.size(1));
  if (paged()) {
    const auto unit = static_cast<uint32_t>(cache.page_size / kPageMultiple);
    cache.page_reciprocal = ((1u << 31) + unit - 1) / unit;
    cache.table_stride = block_table->stride(0);
  }
  return cache;
}

NamedTensors CacheInputs::contents() const {
  return {{"k_cache", k_cache}, {"v_cache", v_cache}, {"k_scale", k_scale}, {"v_scale", v_scale}};
}

NamedTensors CacheInputs::indices() const {
  return {{"cache_seqlens", seqlens},
          {"cache_batch_idx", batch_idx},
          {"cache_leftpad", leftpad},
          {"block_table", block_table}};
}

}  // namespace flashattn
