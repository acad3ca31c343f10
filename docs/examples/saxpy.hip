// y = a x + y, to show how `flashattn-rocm profile code-object` runs a kernel that is not ours:
//
//   clang++-19 -x hip --cuda-device-only --no-gpu-bundle-output -nogpuinc -nogpulib
//     --offload-arch=gfx906 -O3 docs/examples/saxpy.hip -o docs/examples/saxpy.co
//   flashattn-rocm profile code-object docs/examples/saxpy.toml
extern "C" __attribute__((global)) void saxpy(const float* x, float* y, float a, int n) {
  const int i =
      static_cast<int>(__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x());
  if (i < n) y[i] = a * x[i] + y[i];
}
