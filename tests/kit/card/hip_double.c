/* A HIP runtime with two cards that run nothing: it records the last launch, for tests of what the
   op hands to a card. */
#include <stddef.h>
#include <string.h>

enum { kSuccess = 0, kInvalidDevice = 101, kNotSupported = 801, kDevices = 2 };

struct Launch {
  int count;
  int device;      /* current when the launch came */
  int load_device; /* current when the module was loaded last */
  int host_registrations;
  void* stream;
  const char* kernel;
  unsigned grid[3];
  unsigned block[3];
  unsigned char arguments[320]; /* sizeof(FwdArgs) */
} recorded_launch;

static int current_device;
static char kernel_name[256];

int hipSetDevice(int device) {
  if (device < 0 || device >= kDevices) return kInvalidDevice;
  current_device = device;
  return kSuccess;
}

int hipGetDevice(int* device) {
  *device = current_device;
  return kSuccess;
}

int hipGetDeviceCount(int* count) {
  *count = kDevices;
  return kSuccess;
}

int hipGetDevicePropertiesR0600(void* properties, int device) {
  (void)device;
  strcpy((char*)properties, "Double");
  strcpy((char*)properties + 1160, "gfx906:sramecc+:xnack-");
  memcpy((char*)properties + 388, &(int){60}, sizeof(int));
  return kSuccess;
}

int hipGetDeviceProperties(void* properties, int device) {
  (void)properties, (void)device;
  return kNotSupported;
}

const char* hipGetErrorName(int error) { return error == kSuccess ? "hipSuccess" : "hipError"; }
const char* hipGetErrorString(int error) { return hipGetErrorName(error); }

int hipRuntimeGetVersion(int* version) {
  *version = 70000000;
  return kSuccess;
}

int hipModuleLoadData(void** module, const void* image) {
  *module = (void*)image;
  recorded_launch.load_device = current_device;
  return kSuccess;
}

int hipModuleGetFunction(void** function, void* module, const char* name) {
  (void)module;
  *function = strncpy(kernel_name, name, sizeof kernel_name - 1);
  return kSuccess;
}

int hipModuleLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned lds, void* stream, void** parameters,
                          void** extra) {
  struct Launch* launch = &recorded_launch;
  if (lds != 0 || extra != NULL) return kNotSupported;
  launch->count += 1;
  launch->device = current_device;
  launch->stream = stream;
  launch->kernel = function;
  memcpy(launch->grid, (unsigned[]){gx, gy, gz}, sizeof launch->grid);
  memcpy(launch->block, (unsigned[]){bx, by, bz}, sizeof launch->block);
  memcpy(launch->arguments, parameters[0], sizeof launch->arguments);
  return kSuccess;
}

int hipHostRegister(void* pointer, size_t size, unsigned flags) {
  (void)pointer, (void)size, (void)flags;
  recorded_launch.host_registrations += 1;
  return kNotSupported;
}

int hipHostUnregister(void* pointer) {
  (void)pointer;
  return kNotSupported;
}
