// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One shared library that stands for libcuda.so.1, libcupti.so.13,
// libnccl.so.2, libcublasLt.so.13 and libcusparse.so.12: the doubles of
// tests/unit/cuda, so that programs which know nothing of doubles run over
// them. All of CUDA's rules that the doubles keep are kept; what is broken or
// left behind when the process ends is written to MGPU_REHEARSAL/violations,
// and how much cuSPARSE computed to MGPU_REHEARSAL/calls.
// Ranks that are processes meet in the file MGPU_REHEARSAL_WORLD. There is one
// GPU, or as many as MGPU_REHEARSAL_GPUS says; NCCL's version is as
// MGPU_REHEARSAL_NCCL says; what the driver says of its GPUs is in
// MGPU_REHEARSAL_GPU. With MGPU_REHEARSAL_PTX kernels run by their PTX, and two
// nodes of a graph that touch what one of them writes without a path between
// them are a violation; MGPU_REHEARSAL_EDGE takes an edge out of each graph.
// MGPU_REHEARSAL_WRONG spoils a node of one GPU without a word.
#include "tests/rehearsal/Exports.h"
#include "tests/rehearsal/KernelTexts.h"
#include "tests/unit/cuda/DeviceKernelList.h"
#include "tests/unit/cuda/FakeCublasLt.h"
#include "tests/unit/cuda/FakeCupti.h"
#include "tests/unit/cuda/FakeCusparse.h"
#include "tests/unit/cuda/FakeNccl.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

using namespace mgpu;
using namespace mgpu::fake;

#define MGPU_EXPORT_NCCL(name, ...) MGPU_REHEARSAL_EXPORT(nccl##name)
MGPU_NCCL_FUNCTIONS(MGPU_EXPORT_NCCL)
MGPU_NCCL_OPTIONAL(MGPU_EXPORT_NCCL)
MGPU_REHEARSAL_EXPORT(ncclGetErrorString)
MGPU_REHEARSAL_EXPORT(ncclGetLastError)
#define MGPU_EXPORT_LT(name, ...) MGPU_REHEARSAL_EXPORT(cublasLt##name)
MGPU_CUBLASLT_FUNCTIONS(MGPU_EXPORT_LT)
MGPU_REHEARSAL_EXPORT(cublasLtGetStatusString)
MGPU_REHEARSAL_EXPORT(cublasLtGetVersion)
#define MGPU_EXPORT_SPARSE(name, ...) MGPU_REHEARSAL_EXPORT(cusparse##name)
MGPU_CUSPARSE_FUNCTIONS(MGPU_EXPORT_SPARSE)
MGPU_REHEARSAL_EXPORT(cusparseGetErrorString)
#define MGPU_EXPORT_CUPTI(name, ...) MGPU_REHEARSAL_EXPORT(cupti##name)
MGPU_CUPTI_FUNCTIONS(MGPU_EXPORT_CUPTI)
// Those that are called by their names, from Python. Not cuInit: NVRTC looks
// for it, and takes whoever has it for a whole driver.
MGPU_REHEARSAL_EXPORT(cuLibraryLoadData)
MGPU_REHEARSAL_EXPORT(cuLibraryGetKernel)
MGPU_REHEARSAL_EXPORT(cuKernelGetFunction)
MGPU_REHEARSAL_EXPORT(cuLaunchKernel)

namespace {

struct Tables {
  std::shared_ptr<const device::CudaApi> cuda = FakeCuda::api();
  std::shared_ptr<const device::NcclApi> nccl = FakeNccl::api();
  std::shared_ptr<const device::CublasLtApi> products = FakeCublasLt::api();
  std::shared_ptr<const device::CusparseApi> sparse = FakeCusparse::api();
  std::shared_ptr<const device::CuptiApi> cupti = FakeCupti::api();
  StreamWork work = streamWork();
};
Tables *tables;
pid_t owner; // owns the state: a process that forks leaves nothing behind

void *find(std::string_view name) {
#define MGPU_CUDA_GIVE(each, version)                                          \
  if (name == #each)                                                           \
    return reinterpret_cast<void *>(tables->cuda->each);
  MGPU_CUDA_REQUIRED(MGPU_CUDA_GIVE)
  MGPU_CUDA_OPTIONAL(MGPU_CUDA_GIVE)
#undef MGPU_CUDA_GIVE
#define MGPU_WORK_GIVE(each)                                                   \
  if (name == #each)                                                           \
    return reinterpret_cast<void *>(tables->work.each);
  MGPU_WORK_GIVE(cuLaunchKernel)
  MGPU_WORK_GIVE(cuMemcpyDtoDAsync)
#undef MGPU_WORK_GIVE
  return nullptr;
}

void tell(const std::string &what, const char *name = "/violations") {
  std::FILE *file = std::fopen((rehearsal::folder() + name).c_str(), "a");
  if (!file)
    return;
  char program[256] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) < 0)
    program[0] = '?';
  std::fprintf(file, "%s: %s\n", program, what.c_str());
  std::fclose(file);
}

/// What a program left. A process that ends in the middle (a test that lost
/// its context, one that was killed) says nothing.
void sayWhatIsLeft() {
  if (getpid() != owner)
    return;
  const FakeCuda &fake = FakeCuda::instance();
  for (const std::string &each : fake.violations)
    tell(each);
  if (const uint64_t products = FakeCusparse::instance().products)
    tell(std::to_string(products) + " products of cuSPARSE", "/calls");
  for (const std::string &each : FakeCupti::instance().violations)
    tell("CUPTI: " + each);
  if (!fake.hasLostContext() && !fake.neverEnds)
    for (const std::string &each : fake.leaks())
      tell("left behind: " + each);
}

__attribute__((constructor)) void start() {
  tables = new Tables;
  owner = getpid();
  FakeCuda &fake = FakeCuda::reset(uint64_t(owner));
  registerDeviceKernels(fake);
  fake.gpuName = "Fake GPU (test double)";
  fake.gpuBytes = size_t(4) << 30;
  // "NAME|MULTIPROCESSORS|kHz|MEMORY kHz|BUS BITS|BYTES"
  if (const char *kind = std::getenv("MGPU_REHEARSAL_GPU")) {
    std::istringstream words(kind);
    char bar = 0;
    std::getline(words, fake.gpuName, '|');
    words >> fake.multiprocessors >> bar >> fake.clockKhz >> bar >>
        fake.memoryClockKhz >> bar >> fake.busBits >> bar >> fake.gpuBytes;
  }
  if (const char *gpus = std::getenv("MGPU_REHEARSAL_GPUS"))
    fake.gpus = std::atoi(gpus);
  // "GPU:LAUNCH", where it loses its context; with ":never" does not end.
  if (const char *fault = std::getenv("MGPU_REHEARSAL_FAULT")) {
    const char *launch = std::strchr(fault, ':');
    fake.wrongGpu = std::atoi(fault);
    fake.onLaunch = [left = launch ? std::atoi(launch + 1) : 1,
                     isEndless = std::strstr(fault, ":never") !=
                                 nullptr](uint64_t) mutable {
      FakeCuda &fake = FakeCuda::instance();
      if (fake.current()->gpu != fake.wrongGpu || --left != 0)
        return;
      if (isEndless)
        fake.neverEnds = true;
      else
        fake.launchFault = CUDA_ERROR_ILLEGAL_ADDRESS;
    };
  }
  // "drop:GPU:N", "move:GPU:N", "window:GPU:N": the N-th of that GPU.
  int movesWindow = 0;
  if (const char *wrong = std::getenv("MGPU_REHEARSAL_WRONG")) {
    const std::string_view kind(wrong, std::strcspn(wrong, ":"));
    fake.wrongGpu = std::atoi(wrong + kind.size() + 1);
    const int number = std::atoi(std::strrchr(wrong, ':') + 1);
    (kind == "drop"   ? fake.dropsKernel
     : kind == "move" ? fake.movesKernel
                      : movesWindow) = number;
  }
  // Where kernels run by their PTX, all that they touch is known.
  fake.watchesOrder = std::getenv("MGPU_REHEARSAL_PTX");
  if (const char *edge = std::getenv("MGPU_REHEARSAL_EDGE"))
    fake.losesEdge = std::atoi(edge);
  fake.remembersCalls = false;
  fake.kernelsOf = rehearsal::kernelsOf;
  FakeCupti::reset();
  FakeNccl::reset();
  if (const char *world = std::getenv("MGPU_REHEARSAL_WORLD"))
    FakeWorld::share(world);
  if (const char *version = std::getenv("MGPU_REHEARSAL_NCCL"))
    FakeNccl::instance().version = std::atoi(version);
  FakeNccl::instance().movesWindow = movesWindow;
  FakeCublasLt::reset();
#define MGPU_SET_NCCL(name, ...)                                               \
  MGPU_REHEARSAL_SET(nccl##name, tables->nccl->name)
  MGPU_NCCL_FUNCTIONS(MGPU_SET_NCCL)
  MGPU_NCCL_OPTIONAL(MGPU_SET_NCCL)
  MGPU_REHEARSAL_SET(ncclGetErrorString, tables->nccl->GetErrorString)
  MGPU_REHEARSAL_SET(ncclGetLastError, tables->nccl->GetLastError)
#define MGPU_SET_LT(name, ...)                                                 \
  MGPU_REHEARSAL_SET(cublasLt##name, tables->products->name)
  MGPU_CUBLASLT_FUNCTIONS(MGPU_SET_LT)
  MGPU_REHEARSAL_SET(cublasLtGetStatusString, tables->products->GetStatusString)
  MGPU_REHEARSAL_SET(cublasLtGetVersion, tables->products->GetVersion)
  FakeCusparse::reset();
#define MGPU_SET_SPARSE(name, ...)                                             \
  MGPU_REHEARSAL_SET(cusparse##name, tables->sparse->name)
  MGPU_CUSPARSE_FUNCTIONS(MGPU_SET_SPARSE)
  MGPU_REHEARSAL_SET(cusparseGetErrorString, tables->sparse->GetErrorString)
#define MGPU_SET_CUPTI(name, ...)                                              \
  MGPU_REHEARSAL_SET(cupti##name, tables->cupti->name)
  MGPU_CUPTI_FUNCTIONS(MGPU_SET_CUPTI)
  MGPU_REHEARSAL_SET(cuLibraryLoadData, tables->cuda->cuLibraryLoadData)
  MGPU_REHEARSAL_SET(cuLibraryGetKernel, tables->cuda->cuLibraryGetKernel)
  MGPU_REHEARSAL_SET(cuKernelGetFunction, tables->cuda->cuKernelGetFunction)
  MGPU_REHEARSAL_SET(cuLaunchKernel, tables->work.cuLaunchKernel)
  std::atexit(sayWhatIsLeft);
}

} // namespace

extern "C" __attribute__((visibility("default"))) CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int, cuuint64_t,
                    CUdriverProcAddressQueryResult *status) {
  // Asked for by each process that opens CUDA; what a driver maps may be more
  // than the machine has.
  rlimit data{};
  if (std::string_view(symbol) == "cuInit" &&
      getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY)
    tell("CUDA is opened under a limit of data (RLIMIT_DATA)");
  *function = find(symbol);
  if (status)
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                        : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/// What NVRTC does by cuInit(), which it would find here.
extern "C" __attribute__((visibility("default"))) void mgpuDoubleInitialize() {
  FakeCuda &fake = FakeCuda::instance();
  if (fake.initialized)
    return;
  fake.initialized = true;
  fake.initializedBy = getpid();
}
