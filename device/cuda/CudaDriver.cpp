// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/CudaDriver.h"

#include "device/cuda/OpenDriver.h"
#include "device/cuda/graph/CudaGraph.h"

#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <thread>

namespace mgpu::device {

namespace {

class CudaDriver final : public Driver {
public:
  explicit CudaDriver(std::shared_ptr<CudaState> state)
      : state(std::move(state)) {}

  uint32_t numDevices() const override { return state->numDevices; }
  std::string description() const override { return state->description(); }
  std::string architecture() const override { return state->arch(); }
  std::string timedBy() const override { return state->timedBy(); }

  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes) override {
    return state->allocate(device, sizeBytes,
                           device.isHost() ? "a host buffer"
                                           : CudaState::memoryOf(device));
  }

  Result<std::byte *> allocateArena(DeviceId device, uint64_t sizeBytes,
                                    uint64_t mostBytes) override {
    return state->allocateArena(device, sizeBytes, mostBytes);
  }

  Result<KernelHandle> loadKernel(std::string_view name,
                                  std::span<const std::byte> object) override {
    return state->loadKernel(name, object);
  }

  bool awaits(KernelHandle kernel) const override {
    return kernel.value < state->kernels.size() &&
           state->awaits(state->kernels[kernel.value]);
  }

  uint64_t earlyCopyBytes() const override {
    return state->hasEarlyLaunches() ? smallCopyBytes : 0;
  }

  std::unique_ptr<GraphDriver> createGraph() override {
    return std::make_unique<CudaGraph>(state);
  }

  std::optional<DevicePart> part() const override {
    const std::optional<DeviceId> only = state->onlyDevice();
    if (!only)
      return std::nullopt;
    return DevicePart{uint32_t(only->value), 1, only->value == 0, true};
  }
  Result<GroupId> makeGroupId() override { return state->makeGroupId(); }
  Result<void> join(std::span<const DeviceGroup> groups) override {
    return state->join(groups);
  }
  Result<void> adoptHost(std::span<std::byte> memory, bool isPinned) override {
    return state->adoptHost(memory, isPinned);
  }
  Result<void> adopt(DeviceId device, std::span<std::byte> memory) override {
    return state->adopt(device, memory);
  }
  void forget(std::byte *memory) override { state->forget(memory); }
  Result<void> transfer(std::byte *to, const std::byte *from,
                        uint64_t bytes) override {
    return state->transfer(to, from, bytes);
  }
  bool queuesLaunches() const override { return !state->communicators; }
  Result<void> finish() override { return state->finishQueued(); }
  Result<void> checkAlive() const override { return state->checkAlive(); }
  void abandon(const std::string &reason) override { state->giveUp(reason); }

private:
  std::shared_ptr<CudaState> state;
};

std::string uuidText(const CUuuid &uuid) {
  std::string text = "GPU-";
  for (size_t k = 0; k < sizeof uuid.bytes; ++k) {
    if (k == 4 || k == 6 || k == 8 || k == 10)
      text += '-';
    text += fmt::format("{:02x}", uint8_t(uuid.bytes[k]));
  }
  return text;
}

const char *computeModeText(int mode) {
  switch (mode) {
  case CU_COMPUTEMODE_DEFAULT:
    return "default";
  case CU_COMPUTEMODE_PROHIBITED:
    return "prohibited";
  case CU_COMPUTEMODE_EXCLUSIVE_PROCESS:
    return "exclusive";
  default:
    return "unknown";
  }
}

} // namespace

Result<std::unique_ptr<Driver>> createCudaDriver(
    std::shared_ptr<const CudaApi> api, const CudaOptions &options,
    std::shared_ptr<const NcclApi> nccl, CublasLtOpener openProducts,
    Result<std::shared_ptr<const CuptiApi>> cupti, CusparseOpener openSparse) {
  // Before the context, and so before any graph: CUPTI tells of the nodes of
  // those only that it saw being made.
  Result<std::shared_ptr<CuptiSession>> session =
      cupti ? CuptiSession::open(std::move(*cupti))
            : Result<std::shared_ptr<CuptiSession>>(fail(cupti.error()));
  MGPU_TRY_ASSIGN(std::shared_ptr<CudaState> state,
                  CudaState::open(std::move(api), options, std::move(nccl),
                                  std::move(openProducts)));
  state->setCupti(std::move(session));
  state->setSparse(std::move(openSparse));
  return std::make_unique<CudaDriver>(std::move(state));
}

static std::atomic<bool> isOpen = false;

bool hasOpenedCuda() { return isOpen; }

Result<std::unique_ptr<Driver>> createCudaDriver(const CudaOptions &options) {
  MGPU_TRY_ASSIGN(auto api, openCuda());
  isOpen = true;
  std::shared_ptr<const NcclApi> nccl;
  if (options.only) {
    MGPU_TRY_ASSIGN(nccl, openNccl());
  }
  Result<std::shared_ptr<const CuptiApi>> cupti = noCupti();
  // Among ranks a launch that one repeats for its times would wait for others.
  if (options.profiles && !options.only)
    cupti = openCupti();
  return createCudaDriver(
      std::move(api), options, std::move(nccl), [] { return openCublasLt(); },
      std::move(cupti), [] { return openCusparse(); });
}

Result<CudaMachine> inspectCuda(const CudaApi &api) {
  auto check = [&](CUresult code, const char *call, int gpu) -> Result<void> {
    if (code == CUDA_SUCCESS)
      return {};
    return cudaError(api, code, call, fmt::format("on cuda:{}", gpu));
  };
  CudaMachine machine;
  machine.driver = cudaVersionText(api.driverVersion);
  machine.logs = api.cuLogsRegisterCallback != nullptr;
  int count = 0;
  MGPU_TRY(check(api.cuDeviceGetCount(&count), "cuDeviceGetCount", 0));
  std::vector<CUdevice> devices(static_cast<size_t>(count));
  for (int k = 0; k < count; ++k) {
    CUdevice &device = devices[size_t(k)];
    MGPU_TRY(check(api.cuDeviceGet(&device, k), "cuDeviceGet", k));
    CudaMachine::Gpu gpu;
    char name[256] = {};
    MGPU_TRY(check(api.cuDeviceGetName(name, sizeof name - 1, device),
                   "cuDeviceGetName", k));
    gpu.name = name;
    CUuuid uuid{};
    MGPU_TRY(check(api.cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid", k));
    gpu.uuid = uuidText(uuid);
    size_t bytes = 0;
    MGPU_TRY(
        check(api.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem", k));
    gpu.memoryBytes = bytes;
    int major = 0, minor = 0, multiprocessors = 0, mode = 0, clock = 0,
        memoryClock = 0, busBits = 0;
    for (auto [attribute, into] :
         {std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
          std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
          std::pair{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &multiprocessors},
          std::pair{CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &clock},
          std::pair{CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &memoryClock},
          std::pair{CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &busBits},
          std::pair{CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &mode}})
      MGPU_TRY(check(api.cuDeviceGetAttribute(into, attribute, device),
                     "cuDeviceGetAttribute", k));
    gpu.arch = fmt::format("sm_{}{}", major, minor);
    gpu.multiprocessors = uint32_t(std::max(multiprocessors, 0));
    gpu.clockKhz = uint32_t(std::max(clock, 0));
    gpu.memoryClockKhz = uint32_t(std::max(memoryClock, 0));
    gpu.busBits = uint32_t(std::max(busBits, 0));
    gpu.computeMode = computeModeText(mode);
    machine.gpus.push_back(std::move(gpu));
  }
  for (int a = 0; a < count; ++a)
    for (int b = 0; b < count; ++b) {
      int reaches = a == b;
      if (a != b)
        MGPU_TRY(check(api.cuDeviceCanAccessPeer(&reaches, devices[size_t(a)],
                                                 devices[size_t(b)]),
                       "cuDeviceCanAccessPeer", a));
      machine.gpus[size_t(a)].reaches.push_back(reaches != 0);
    }
  return machine;
}

Result<CudaMachine> inspectCuda() {
  MGPU_TRY_ASSIGN(auto api, openCuda());
  isOpen = true;
  return inspectCuda(*api);
}

Result<void> awaitStream(void *stream, std::chrono::milliseconds deadline) {
  MGPU_TRY_ASSIGN(const auto api, openCuda());
  const auto on = static_cast<CUstream>(stream);
  auto check = [&](CUresult code, const char *call) -> Result<void> {
    return code == CUDA_SUCCESS
               ? Result<void>()
               : cudaError(*api, code, call, "of the caller's stream");
  };
  CUcontext current = nullptr;
  if (!on && (api->cuCtxGetCurrent(&current) != CUDA_SUCCESS || !current))
    return {}; // nobody gave it anything
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  MGPU_TRY(check(api->cuStreamGetCaptureInfo(on, &status, nullptr, nullptr,
                                             nullptr, nullptr, nullptr),
                 "cuStreamGetCaptureInfo"));
  if (status != CU_STREAM_CAPTURE_STATUS_NONE)
    return fail(ErrorKind::Unsupported,
                "the caller's stream is being captured, and this program is "
                "replayed between what the stream does: replay it before or "
                "after the capture");
  const BesideCaptures beside(*api);
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const CUresult code = api->cuStreamQuery(on);
    if (code != CUDA_ERROR_NOT_READY)
      return check(code, "cuStreamQuery");
    if (std::chrono::steady_clock::now() - start > deadline)
      return fail(ErrorKind::Absent,
                  fmt::format("the work of the caller's stream did not end "
                              "within {} ms, and nothing was replayed",
                              deadline.count()));
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

std::string cudaHeaderVersion() { return cudaVersionText(CUDA_VERSION); }

} // namespace mgpu::device
