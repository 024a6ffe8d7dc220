// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/graph/CudaState.h"

#include <fmt/format.h>
#include <utility>

namespace mgpu::device {

CudaState::CudaState(std::shared_ptr<const CudaApi> api,
                     const CudaOptions &options,
                     std::shared_ptr<const NcclApi> nccl,
                     CublasLtOpener openProducts)
    : api(std::move(api)), numDevices(options.numDevices), options(options),
      nccl(std::move(nccl)), openProducts(std::move(openProducts)) {
  whereText =
      options.numDevices == 1
          ? fmt::format("on cuda:{}", options.gpu)
          : fmt::format("on cuda:{}/{}", options.gpu, options.numDevices);
}

Result<std::shared_ptr<CudaState>>
CudaState::open(std::shared_ptr<const CudaApi> api, const CudaOptions &options,
                std::shared_ptr<const NcclApi> nccl,
                CublasLtOpener openProducts) {
  if (options.numDevices == 0 || options.numDevices > maxDevicesOnGpu)
    return fail(ErrorKind::Usage,
                fmt::format("a GPU cannot be {} devices: choose 1 to {}",
                            options.numDevices, maxDevicesOnGpu));
  std::shared_ptr<CudaState> state(new CudaState(
      std::move(api), options, std::move(nccl), std::move(openProducts)));
  MGPU_TRY(state->openGpu());
  return state;
}

Result<void> CudaState::openGpu() {
  log = std::make_unique<CudaLog>(*api);
  int count = 0;
  MGPU_TRY(check(api->cuDeviceGetCount(&count), "cuDeviceGetCount", where()));
  if (options.gpu < 0 || options.gpu >= count)
    return fail(ErrorKind::Absent,
                fmt::format("there is no GPU {}: this machine shows {} (see "
                            "nvidia-smi and CUDA_VISIBLE_DEVICES)",
                            options.gpu, count));
  MGPU_TRY(
      check(api->cuDeviceGet(&device, options.gpu), "cuDeviceGet", where()));
  char name[256] = {};
  MGPU_TRY(check(api->cuDeviceGetName(name, sizeof name - 1, device),
                 "cuDeviceGetName", where()));
  gpuName = name;
  int unified = 0;
  for (auto [attribute, into] :
       {std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        std::pair{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &multiprocessors},
        std::pair{CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &unified}})
    MGPU_TRY(check(api->cuDeviceGetAttribute(into, attribute, device),
                   "cuDeviceGetAttribute", where()));
  if (!unified)
    return fail(ErrorKind::Absent,
                fmt::format("GPU {} ({}) does not share its addresses with "
                            "the host, which this program needs",
                            options.gpu, gpuName));
  // The primary context is the one the runtime API, and so NCCL and the
  // caller's libraries, use: one context on a GPU, not two taking turns.
  MGPU_TRY(check(api->cuDevicePrimaryCtxRetain(&context, device),
                 "cuDevicePrimaryCtxRetain", where()));
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY(
      check(api->cuCtxGetStreamPriorityRange(&lowestPriority, &highestPriority),
            "cuCtxGetStreamPriorityRange", where()));
  // Non-blocking: never in step with the caller's legacy default stream.
  return check(api->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING,
                                               lowestPriority),
               "cuStreamCreateWithPriority", where());
}

CudaState::~CudaState() {
  // Frees wait for the work that uses them: after a hang they would for ever.
  if (!isLost() && context) {
    Current current(*this);
    if (current.entered) {
      if (communicators)
        communicators->close();
      if (theProducts)
        theProducts->close();
      if (theSparse)
        theSparse->close();
      for (std::byte *memory : adopted)
        api->cuMemHostUnregister(memory);
      for (auto &[hash, library] : libraries)
        api->cuLibraryUnload(library.handle);
      for (std::byte *memory : windows)
        communicators->freeWindow(memory);
      for (CUdeviceptr memory : deviceMemory)
        api->cuMemFree(memory);
      for (void *memory : hostMemory)
        api->cuMemFreeHost(memory);
      if (queued)
        api->cuEventDestroy(queued);
      for (CUstream each : {stream, turns[0], turns[1]})
        if (each)
          api->cuStreamDestroy(each);
    }
  }
  if (!isLost() && context)
    api->cuDevicePrimaryCtxRelease(device);
}

CudaState::Current::Current(CudaState &state) : state(state) {
  CUcontext now = nullptr;
  wasCurrent =
      state.api->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == state.context;
  if (!wasCurrent)
    entered = state.check(state.api->cuCtxPushCurrent(state.context),
                          "cuCtxPushCurrent", state.where());
}

CudaState::Current::~Current() {
  CUcontext popped = nullptr;
  if (entered && !wasCurrent)
    state.api->cuCtxPopCurrent(&popped);
}

Result<void> CudaState::check(CUresult code, std::string_view call,
                              std::string_view where) {
  if (code == CUDA_SUCCESS)
    return {};
  auto error = cudaError(*api, code, call, where, log ? log->take() : "");
  if (isSticky(code))
    setLost(error.value().message);
  return error;
}

bool CudaState::isLost() const {
  std::lock_guard<std::mutex> lock(lostMutex);
  return !lost.empty();
}

void CudaState::setLost(const std::string &reason) {
  std::lock_guard<std::mutex> lock(lostMutex);
  if (lost.empty())
    lost = reason;
}

Result<void> CudaState::checkAlive() const {
  std::lock_guard<std::mutex> lock(lostMutex);
  if (lost.empty())
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("this target was lost before ({}): start the program "
                          "again",
                          lost));
}

void CudaState::warnOnce(const std::string &sentence) {
  if (options.warn && warned.insert(sentence).second)
    options.warn(sentence);
}

void CudaState::setCupti(Result<std::shared_ptr<CuptiSession>> session) {
  cuptiSession = session ? *session : nullptr;
  withoutCupti = session ? "" : session.error().message;
}

void CudaState::sayEvents() {
  if (options.profiles && !cuptiSession)
    warnOnce(fmt::format("nodes are timed by {}", timedBy()));
}

std::string CudaState::timedBy() const {
  return cuptiSession
             ? fmt::format("CUPTI {}", cuptiSession->version())
             : fmt::format("CUDA events around each node, which delay it "
                           "(without CUPTI: {})",
                           withoutCupti);
}

std::string CudaState::arch() const {
  return fmt::format("sm_{}{}", major, minor);
}

std::string CudaState::description() const {
  return fmt::format("cuda: {} (GPU {}, {}) as {} device{}, driver {}", gpuName,
                     options.gpu, arch(), numDevices,
                     numDevices == 1 ? "" : "s",
                     cudaVersionText(api->driverVersion));
}

} // namespace mgpu::device
