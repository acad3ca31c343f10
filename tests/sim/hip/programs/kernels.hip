// Small kernels for the facade's tests; no header, so that no HIP installation is needed.
#define GLOBAL extern "C" __attribute__((global))
#define EXACT_THREADS(n) __attribute__((amdgpu_flat_work_group_size(n, n)))

extern __attribute__((shared)) float dynamic_lds[];

static __attribute__((device)) unsigned global_id() {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() +
         __builtin_amdgcn_workitem_id_x();
}

GLOBAL void vadd(const float* a, const float* b, float* c, int n) {
  const int i = global_id();
  if (i < n) c[i] = a[i] + b[i];
}

// Faults by design: every lane of the last workgroup writes `beyond` elements too far.
GLOBAL void write_beyond(float* c, int n, int beyond) {
  const int i = global_id();
  if (i < n) c[i + beyond] = 1.0f;
}

// What a launch tells a kernel of itself.
GLOBAL void shape(unsigned* out) {
  if (__builtin_amdgcn_workitem_id_x() + __builtin_amdgcn_workitem_id_y() +
          __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workgroup_id_y() +
          __builtin_amdgcn_workgroup_id_z() !=
      0)
    return;
  out[0] = __builtin_amdgcn_workgroup_size_x();
  out[1] = __builtin_amdgcn_workgroup_size_y();
  out[2] = __builtin_amdgcn_workgroup_size_z();
  out[3] = __builtin_amdgcn_grid_size_x();
  out[4] = __builtin_amdgcn_grid_size_y();
  out[5] = __builtin_amdgcn_grid_size_z();
}

// The same from the hidden arguments, which code object version 5 keeps behind the explicit ones.
GLOBAL void hidden_arguments(unsigned* out) {
  // The size of dynamic LDS is passed only to kernels that use it.
  *(volatile float*)dynamic_lds = 0.0f;
  const auto* hidden = (const unsigned*)__builtin_amdgcn_implicitarg_ptr();
  out[0] = hidden[0];  // block_count_x, y, z
  out[1] = hidden[1];
  out[2] = hidden[2];
  out[3] = hidden[3];        // group_size_x and y, 16 bits each
  out[4] = hidden[4];        // group_size_z; remainder_x
  out[5] = hidden[64 / 4];   // grid_dims; what follows is not used
  out[6] = hidden[120 / 4];  // dynamic_lds_size
}

// One element for each workgroup, at its linear index: shows that every workgroup runs once.
GLOBAL void count_groups(unsigned* out, unsigned groups_x, unsigned groups_y) {
  if (__builtin_amdgcn_workitem_id_x() != 0) return;
  const unsigned group =
      (__builtin_amdgcn_workgroup_id_z() * groups_y + __builtin_amdgcn_workgroup_id_y()) *
          groups_x +
      __builtin_amdgcn_workgroup_id_x();
  out[group] += group + 1;
}

// Arguments of mixed size and alignment, and a struct by value.
struct Mixed {
  float* out;
  char small;
  double wide;
};
GLOBAL void mixed(char a, Mixed m, short b, long c) {
  m.out[0] = a;
  m.out[1] = m.small;
  m.out[2] = m.wide;
  m.out[3] = b;
  m.out[4] = c;
}

struct Padded {
  double wide;
  char small;  // 7 bytes of padding follow
};
GLOBAL void padded(Padded p, float* out) { out[0] = p.wide + p.small; }

GLOBAL void EXACT_THREADS(128) exact_128(float* out) { out[global_id()] = 1.0f; }

__attribute__((device)) int counter = 7;
__attribute__((constant)) float scales[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__attribute__((device)) int* counter_pointer = &counter;  // needs a relocation
GLOBAL void read_variables(float* out) {
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  if (i < 4) out[i] = scales[i];
  if (i == 4) out[i] = *counter_pointer;
  if (i == 0) counter += 1;
}

// LDS: the static part, then the dynamic one, reversed within a workgroup of 64.
GLOBAL void reverse(float* data) {
  __attribute__((shared)) static float fixed[64];
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  fixed[i] = data[i];
  dynamic_lds[63 - i] = data[i] + 1.0f;
  __builtin_amdgcn_s_barrier();
  data[i] = fixed[63 - i] + dynamic_lds[i];
}

// Register pressure and LDS of a known size, for occupancy.
GLOBAL void EXACT_THREADS(256) lds_32k(float* out) {
  __attribute__((shared)) static float tile[8192];
  for (unsigned i = __builtin_amdgcn_workitem_id_x(); i < 8192; i += 256) tile[i] = out[i];
  __builtin_amdgcn_s_barrier();
  out[global_id()] = tile[8191 - __builtin_amdgcn_workitem_id_x()];
}
GLOBAL void EXACT_THREADS(64) vgprs_100(float* out) {
  asm volatile("v_mov_b32 v99, 0" ::: "v99");
  out[global_id()] = 1.0f;
}
