// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/graph/CudaState.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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

// CudaState's cuBLASLt and cuSPARSE, opened when first asked for.

/// Opens a library when first asked for it, and makes its handle. The handle of
/// a library that is not there stays null, and the user is told what happens
/// then.
template <typename Open, typename Handle>
static Result<void> openOnce(CudaState &state, Open &opener,
                             std::unique_ptr<Handle> &handle,
                             std::string_view whatIsWithout) {
  Open open = std::exchange(opener, nullptr);
  if (!open)
    return {};
  MGPU_TRY(state.checkAlive());
  auto found = open();
  if (!found && found.error().kind == ErrorKind::Absent) {
    state.warnOnce(fmt::format("{} run in mgpu's own text: {}", whatIsWithout,
                               found.error().message));
    return {};
  }
  MGPU_TRY_ASSIGN(auto library, std::move(found));
  CudaState::Current current(state);
  MGPU_TRY(current.entered);
  MGPU_TRY_ASSIGN(handle, Handle::open(std::move(library), state.where()));
  return {};
}

Result<Products *> CudaState::products() {
  MGPU_TRY(openOnce(*this, openProducts, theProducts,
                    "matrix products that cuBLASLt computes where it is "
                    "there"));
  return theProducts.get();
}

Result<SparseProducts *> CudaState::sparseProducts() {
  MGPU_TRY(openOnce(*this, openSparse, theSparse,
                    "products that cuSPARSE computes where it is there"));
  return theSparse.get();
}

Result<std::optional<uint64_t>> CudaState::sparseBytes(const SparseCall &call,
                                                       std::string_view name) {
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  return theSparse->bufferBytes(call, name);
}

Result<bool> CudaState::prepareProduct(ProductCall &call,
                                       std::string_view name) {
  MGPU_TRY(checkAlive());
  {
    Current current(*this);
    MGPU_TRY(current.entered);
    MGPU_TRY_ASSIGN(bool isThere, theProducts->choose(call, name));
    if (!isThere)
      return false;
  }
  Current current(*this);
  MGPU_TRY(current.entered);
  CUdeviceptr scratch = 0;
  const std::string what = fmt::format("for '{}' {}", name, where());
  MGPU_TRY(check(api->cuMemAlloc(&scratch, extentOfSums(call.product)),
                 "cuMemAlloc", what));
  Result<void> done = theProducts->issue(
      call, reinterpret_cast<std::byte *>(uintptr_t(scratch)), stream, name);
  if (done)
    done = wait(stream, "a first matrix product");
  if (!isLost())
    api->cuMemFree(scratch);
  MGPU_TRY(done);
  return true;
}

// The part of CudaState for programs of several GPUs, of which this driver has
// one.

std::string CudaState::devicesText() const {
  return options.only
             ? fmt::format("{} alone in this process", options.only->value)
             : fmt::format("0 to {}", numDevices - 1);
}

void CudaState::giveUp(const std::string &reason) {
  if (communicators)
    communicators->abort();
  setLost(reason);
}

static tl::unexpected<Error> notARank() {
  return fail(ErrorKind::Usage, "this target is a GPU of its own, not one of "
                                "several");
}

Result<GroupId> CudaState::makeGroupId() {
  if (!nccl || !options.only)
    return notARank();
  MGPU_TRY_ASSIGN(NcclId id, Communicators::makeId(*nccl));
  GroupId out;
  static_assert(sizeof out == sizeof id);
  std::memcpy(&out, &id, sizeof out);
  return out;
}

Result<void> CudaState::join(std::span<const DeviceGroup> groups) {
  if (!nccl || !options.only)
    return notARank();
  if (communicators)
    return fail(ErrorKind::Usage, "this target has joined the others already");
  MGPU_TRY(checkAlive());
  MGPU_TRY(checkNcclMixing());
  if (options.nccl.windows &&
      (nccl->version < ncclWithWindows || !nccl->MemAlloc || !nccl->MemFree ||
       !nccl->CommWindowRegister || !nccl->CommWindowDeregister))
    return fail(ErrorKind::Absent,
                fmt::format("NCCL {} has no windows: install 2.27 or later, or "
                            "leave out windows",
                            ncclVersionText(nccl->version)));
  if (options.nccl.windows &&
      (groups.empty() ||
       std::find(groups[0].members.begin(), groups[0].members.end(),
                 *options.only) == groups[0].members.end()))
    return fail(ErrorKind::Usage, "windows are of the first group, which has "
                                  "all devices");
  Current current(*this);
  MGPU_TRY(current.entered);
  communicators = std::make_unique<Communicators>(
      nccl, options.watch, options.deadline, where(), options.nccl);
  for (const DeviceGroup &group : groups) {
    auto at =
        std::find(group.members.begin(), group.members.end(), *options.only);
    if (at == group.members.end()) {
      communicators->skip(group.members);
      continue;
    }
    NcclId id;
    std::memcpy(&id, &group.id, sizeof id);
    MGPU_TRY(communicators->join(id, uint32_t(at - group.members.begin()),
                                 group.members));
  }
  return {};
}

Result<std::byte *> CudaState::allocateArena(DeviceId device,
                                             uint64_t sizeBytes,
                                             uint64_t mostBytes) {
  MGPU_TRY_ASSIGN(std::byte * out, makeArena(device, sizeBytes, mostBytes));
  arenas.push_back({out, size_t(sizeBytes)});
  return out;
}

Result<std::byte *> CudaState::makeArena(DeviceId device, uint64_t sizeBytes,
                                         uint64_t mostBytes) {
  // Nobody has anything: so say all.
  if (!options.nccl.windows || !isHere(device) || mostBytes == 0)
    return allocate(device, sizeBytes, memoryOf(device));
  if (!communicators)
    return fail(ErrorKind::Usage,
                "the arena of a GPU is a window of NCCL's: join the others "
                "first");
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  // The arena is as large on every rank, because old versions want it so.
  const uint64_t bytes =
      (std::max(sizeBytes, mostBytes) + ncclWindowAlignment - 1) /
      ncclWindowAlignment * ncclWindowAlignment;
  std::byte *out = nullptr;
  Result<bool> made = communicators->makeWindow(bytes, out);
  if (out)
    windows.push_back(out);
  MGPU_TRY(made);
  if (!*made)
    warnOnce(fmt::format("NCCL {} registers no windows {}: its collectives are "
                         "what they are without",
                         ncclVersionText(nccl->version), where()));
  MGPU_TRY(fill(CUdeviceptr(uintptr_t(out)), 0, bytes));
  memory.add(out, sizeBytes, device);
  return out;
}

Result<void> CudaState::adoptHost(std::span<std::byte> memory, bool isPinned) {
  MGPU_TRY(checkAlive());
  if (memory.empty())
    return {};
  int sameAddress = 0;
  MGPU_TRY(check(
      api->cuDeviceGetAttribute(
          &sameAddress,
          CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, device),
      "cuDeviceGetAttribute", where()));
  if (!sameAddress)
    return fail(ErrorKind::Absent,
                fmt::format("{} ({}) cannot reach host memory that GPUs "
                            "share by its address, which several of them need",
                            where(), gpuName));
  if (!isPinned) { // portable, so for all contexts (cuda.h 9474)
    Current current(*this);
    MGPU_TRY(current.entered);
    CUresult code = api->cuMemHostRegister(memory.data(), memory.size(),
                                           CU_MEMHOSTREGISTER_PORTABLE |
                                               CU_MEMHOSTREGISTER_DEVICEMAP);
    if (code == CUDA_ERROR_OUT_OF_MEMORY)
      return fail(ErrorKind::Absent,
                  fmt::format("cannot pin the {} bytes of host buffers {}: use "
                              "smaller buffers or raise the limit of locked "
                              "memory",
                              memory.size(), where()));
    MGPU_TRY(check(code, "cuMemHostRegister", where()));
    adopted.push_back(memory.data());
  }
  this->memory.add(memory.data(), memory.size(), DeviceId::host());
  return {};
}

Result<void> CudaState::warmUp(const NcclCall &call, std::string_view name) {
  // The key is equal on every rank, or one would wait for a call another leaves
  // out. Who sends to whom counts: a pair connects one way.
  std::string key =
      fmt::format("{} {} {} {} {} {} {}", call.group, toString(call.kind),
                  uint32_t(call.type), uint32_t(call.reduction), call.count,
                  call.root, toString(call.pairs));
  if (!warm.insert(key).second)
    return {};
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  const auto run = [&]() -> Result<void> {
    MGPU_TRY(communicators->issue(call, stream, name));
    return wait(stream, fmt::format("the first run of '{}'", name));
  };
  const uint64_t bytes = call.bytesWritten();
  const bool isInArena = std::ranges::any_of(arenas, [&](auto arena) {
    return call.recv >= arena.data() && call.recv < arena.data() + arena.size();
  });
  if (isInArena || bytes == 0)
    return run();
  // An argument on the device may have its value already.
  CUdeviceptr kept = 0;
  MGPU_TRY(check(api->cuMemAlloc(&kept, bytes), "cuMemAlloc", where()));
  auto *copy = reinterpret_cast<std::byte *>(uintptr_t(kept));
  Result<void> done = transfer(copy, call.recv, bytes);
  if (done)
    done = run();
  if (done)
    done = transfer(call.recv, copy, bytes);
  api->cuMemFree(kept);
  return done;
}

} // namespace mgpu::device
