// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/graph/CudaState.h"

#include "support/Sha256.h"

#include <cstring>
#include <fmt/format.h>
#include <thread>
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
        api->cuLibraryUnload(library);
      for (std::byte *memory : windows)
        communicators->freeWindow(memory);
      for (CUdeviceptr memory : deviceMemory)
        api->cuMemFree(memory);
      for (void *memory : hostMemory)
        api->cuMemFreeHost(memory);
      if (queued)
        api->cuEventDestroy(queued);
      if (stream)
        api->cuStreamDestroy(stream);
    }
  }
  if (!isLost() && context)
    api->cuDevicePrimaryCtxRelease(device);
}

CudaState::Current::Current(CudaState &state)
    : entered(state.check(state.api->cuCtxPushCurrent(state.context),
                          "cuCtxPushCurrent", state.where())),
      state(state) {}

CudaState::Current::~Current() {
  CUcontext popped = nullptr;
  if (entered)
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

Result<void> CudaState::fill(CUdeviceptr memory, unsigned char value,
                             uint64_t bytes) {
  // On our stream: the plain cuMemset runs on the legacy one, for which a
  // non-blocking stream does not wait.
  MGPU_TRY(check(api->cuMemsetD8Async(memory, value, bytes, stream),
                 "cuMemsetD8Async", where()));
  return wait(stream, "zeroing memory");
}

Result<std::byte *> CudaState::allocate(DeviceId owner, uint64_t sizeBytes,
                                        std::string_view purpose) {
  if (!owner.isHost() && !isHere(owner))
    return fail(ErrorKind::Invalid,
                fmt::format("memory is asked of device {}, but the devices are "
                            "{}",
                            owner.value, devicesText()));
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  uint64_t bytes = std::max<uint64_t>(sizeBytes, 1);
  if (owner.isHost()) {
    void *pinned = nullptr;
    CUresult code = api->cuMemHostAlloc(
        &pinned, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (code == CUDA_ERROR_OUT_OF_MEMORY)
      return fail(ErrorKind::Absent,
                  fmt::format("cannot pin {} bytes of the host's memory for "
                              "{}: use smaller buffers or raise the limit of "
                              "locked memory",
                              sizeBytes, purpose));
    MGPU_TRY(check(code, "cuMemHostAlloc", where()));
    hostMemory.push_back(pinned);
    std::memset(pinned, 0, bytes);
    auto *out = static_cast<std::byte *>(pinned);
    memory.add(out, sizeBytes, owner);
    return out;
  }
  CUdeviceptr address = 0;
  CUresult code = api->cuMemAlloc(&address, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0, total = 0;
    bool known = api->cuMemGetInfo(&free, &total) == CUDA_SUCCESS;
    std::string fits = "it does not say what is free";
    if (known)
      fits = fmt::format("{} of its {} bytes are free, and so many would fit",
                         free, total);
    if (known && numDevices > 1)
      fits += fmt::format(" here, or {} for each of the {} devices",
                          (free + deviceBytes) / numDevices, numDevices);
    return fail(ErrorKind::Absent,
                fmt::format("no room for {} bytes for {} {} ({}): {}; use "
                            "smaller buffers or fewer devices on the GPU",
                            sizeBytes, purpose, where(), gpuName, fits));
  }
  MGPU_TRY(check(code, "cuMemAlloc", where()));
  deviceMemory.push_back(address);
  MGPU_TRY(fill(address, 0, bytes));
  deviceBytes += bytes;
  auto *out = reinterpret_cast<std::byte *>(uintptr_t(address));
  memory.add(out, sizeBytes, owner);
  return out;
}

Result<const std::byte *> CudaState::wordOfOne() {
  if (oneWord)
    return oneWord;
  MGPU_TRY_ASSIGN(std::byte * word, allocate(firstDevice(), sizeof(uint32_t),
                                             "the progress of collectives"));
  Current current(*this);
  MGPU_TRY(current.entered);
  // Its first byte: both sides are little-endian.
  MGPU_TRY(fill(CUdeviceptr(uintptr_t(word)), 1, 1));
  return oneWord = word;
}

Result<const std::byte *> CudaState::zeros() {
  if (!zeroBytes) {
    MGPU_TRY_ASSIGN(zeroBytes,
                    allocate(firstDevice(), sizeof(uint64_t), "zeros"));
  }
  return zeroBytes;
}

Result<std::shared_ptr<std::byte>> CudaState::borrow(DeviceId owner,
                                                     uint64_t sizeBytes,
                                                     std::string_view purpose) {
  using Key = Spare::key_type;
  auto lend = [this](Key key, std::byte *at) {
    return std::shared_ptr<std::byte>(
        at, [spare = spare, key](std::byte *it) { spare->emplace(key, it); });
  };
  const Key wanted{owner.isHost(), sizeBytes};
  // What is far too large stays for who needs it.
  auto found = spare->lower_bound(wanted);
  if (found != spare->end() && found->first.first == wanted.first &&
      found->first.second / 2 <= sizeBytes) {
    auto [key, at] = *found;
    spare->erase(found);
    return lend(key, at);
  }
  MGPU_TRY_ASSIGN(std::byte * at, allocate(owner, sizeBytes, purpose));
  return lend(wanted, at);
}

Result<CUlibrary> CudaState::loadLibrary(std::string_view name,
                                         std::span<const std::byte> cubin) {
  // Kernels compiled together come with the same cubin.
  Sha256 hash;
  hash.addField({reinterpret_cast<const char *>(cubin.data()), cubin.size()});
  std::string key = hash.hex();
  if (auto at = libraries.find(key); at != libraries.end())
    return at->second;
  CUlibrary library = nullptr;
  MGPU_TRY(check(api->cuLibraryLoadData(&library, cubin.data(), nullptr,
                                        nullptr, 0, nullptr, nullptr, 0),
                 "cuLibraryLoadData",
                 fmt::format("for kernel {} {}", name, where())));
  libraries.emplace(key, library);
  return library;
}

Result<CUkernel> CudaState::loadEntry(CUlibrary library,
                                      const std::string &entry,
                                      std::string_view name) {
  CUkernel kernel = nullptr;
  std::string forKernel = fmt::format("for kernel {} {}", name, where());
  MGPU_TRY(check(api->cuLibraryGetKernel(&kernel, library, entry.c_str()),
                 "cuLibraryGetKernel", forKernel));
  // Loading is lazy by default, and a first launch that loads may wait for the
  // whole GPU: both steps here, before any graph exists.
  CUfunction function = nullptr;
  MGPU_TRY(check(api->cuKernelGetFunction(&function, kernel),
                 "cuKernelGetFunction", forKernel));
  MGPU_TRY(check(api->cuFuncLoad(function), "cuFuncLoad", forKernel));
  return kernel;
}

Result<void> CudaState::setSharedBytes(CUkernel kernel, uint32_t bytes,
                                       std::string_view name) {
  // Without asking it has 48 KiB less its own static bytes (cuda.h 987). What
  // nodes were made with before stays allowed.
  uint32_t &allowed = sharedBytes[kernel];
  if (bytes <= allowed)
    return {};
  const std::string forKernel = fmt::format("for kernel {} {}", name, where());
  int most = 0, fixed = 0;
  MGPU_TRY(check(
      api->cuDeviceGetAttribute(
          &most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device),
      "cuDeviceGetAttribute", where()));
  MGPU_TRY(check(api->cuKernelGetAttribute(&fixed,
                                           CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                           kernel, device),
                 "cuKernelGetAttribute", forKernel));
  if (uint64_t(bytes) + uint64_t(fixed) > uint64_t(most))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {} wants {} bytes of shared memory, {} "
                            "({}) gives a block {}",
                            name, uint64_t(bytes) + uint64_t(fixed), where(),
                            gpuName, most));
  MGPU_TRY(check(
      api->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                int(bytes), kernel, device),
      "cuKernelSetAttribute", forKernel));
  allowed = bytes;
  return {};
}

Result<KernelHandle> CudaState::loadKernel(std::string_view name,
                                           std::span<const std::byte> object) {
  MGPU_TRY(checkAlive());
  LoadedKernel loaded;
  MGPU_TRY_ASSIGN(loaded.launch, decodeImage(name, object));
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY_ASSIGN(CUlibrary library, loadLibrary(name, loaded.launch.bytes()));
  loaded.launch.blob.clear();
  MGPU_TRY_ASSIGN(loaded.kernel, loadEntry(library, loaded.launch.entry, name));
  int threads = 0;
  std::string forKernel = fmt::format("for kernel {} {}", name, where());
  MGPU_TRY(check(api->cuKernelGetAttribute(
                     &threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                     loaded.kernel, device),
                 "cuKernelGetAttribute", forKernel));
  if (loaded.launch.block.volume() > uint64_t(threads))
    return fail(ErrorKind::Invalid,
                fmt::format("kernel {} has blocks of {} threads, but {} ({}) "
                            "runs it with at most {}: choose a smaller block",
                            name, loaded.launch.block.volume(), where(),
                            gpuName, threads));
  MGPU_TRY(
      setSharedBytes(loaded.kernel, loaded.launch.dynamicSharedBytes, name));
  // The parameters end where the driver says that there is no such index.
  for (size_t k = 0;; ++k) {
    size_t offset = 0, size = 0;
    CUresult code = api->cuKernelGetParamInfo(loaded.kernel, k, &offset, &size);
    if (code == CUDA_ERROR_INVALID_VALUE)
      break;
    MGPU_TRY(check(code, "cuKernelGetParamInfo", forKernel));
    loaded.parameterSizes.push_back(size);
  }
  if (log)
    log->take(); // that last call is not a failure
  kernels.push_back(std::move(loaded));
  return KernelHandle{uint32_t(kernels.size() - 1)};
}

Result<CUkernel> CudaState::deviceKernel(const std::string &entry,
                                         const std::string &source) {
  if (auto at = deviceKernels.find(entry); at != deviceKernels.end())
    return at->second;
  MGPU_TRY(checkAlive());
  if (!options.compile)
    return fail(ErrorKind::Absent,
                fmt::format("{} needs the kernel {}, and there is no compiler "
                            "for it: install NVRTC",
                            where(), entry));
  MGPU_TRY_ASSIGN(std::vector<std::byte> cubin,
                  options.compile(source, entry, arch()));
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY_ASSIGN(CUlibrary library, loadLibrary(entry, cubin));
  MGPU_TRY_ASSIGN(CUkernel kernel, loadEntry(library, entry, entry));
  deviceKernels.emplace(entry, kernel);
  return kernel;
}

void CudaState::warnOnce(const std::string &sentence) {
  if (options.warn && warned.insert(sentence).second)
    options.warn(sentence);
}

Result<Products *> CudaState::products() {
  if (CublasLtOpener open = std::exchange(openProducts, nullptr)) {
    MGPU_TRY(checkAlive());
    Result<std::shared_ptr<const CublasLtApi>> found = open();
    if (!found && found.error().kind == ErrorKind::Absent) {
      warnOnce(fmt::format("matrix products that cuBLASLt computes where it is "
                           "there run in mgpu's own text: {}",
                           found.error().message));
      return nullptr;
    }
    MGPU_TRY_ASSIGN(auto library, std::move(found));
    Current current(*this);
    MGPU_TRY(current.entered);
    MGPU_TRY_ASSIGN(theProducts, Products::open(std::move(library), where()));
  }
  return theProducts.get();
}

Result<SparseProducts *> CudaState::sparseProducts() {
  if (CusparseOpener open = std::exchange(openSparse, nullptr)) {
    MGPU_TRY(checkAlive());
    Result<std::shared_ptr<const CusparseApi>> found = open();
    if (!found && found.error().kind == ErrorKind::Absent) {
      warnOnce(fmt::format("products that cuSPARSE computes where it is there "
                           "run in mgpu's own text: {}",
                           found.error().message));
      return nullptr;
    }
    MGPU_TRY_ASSIGN(auto library, std::move(found));
    Current current(*this);
    MGPU_TRY(current.entered);
    MGPU_TRY_ASSIGN(theSparse,
                    SparseProducts::open(std::move(library), where()));
  }
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

Result<void> CudaState::wait(CUstream stream, std::string_view what) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  bool isTimed = options.deadline.count() > 0;
  // A short replay is polled for; a long one is not worth a busy core.
  constexpr auto busyPolling = std::chrono::microseconds(500);
  while (true) {
    CUresult code = api->cuStreamQuery(stream);
    if (code != CUDA_ERROR_NOT_READY)
      return check(code, "cuStreamQuery",
                   fmt::format("after {} {}", what, where()));
    log->take(); // it may call that a failure, too
    auto passed = Clock::now() - start;
    if (isTimed && passed > options.deadline) {
      std::string message =
          communicators
              ? fmt::format("{} {} did not end within {} ms: a kernel never "
                            "ends, or another rank does not take part",
                            what, where(), options.deadline.count())
              : fmt::format("{} {} did not end within {} ms; CUDA cannot stop "
                            "it, so the target is lost to this process: find "
                            "the kernel that never ends with --target host, or "
                            "allow more time",
                            what, where(), options.deadline.count());
      giveUp(message);
      return fail(ErrorKind::Invalid, message);
    }
    if (communicators && passed > busyPolling)
      if (Result<void> ok = communicators->check(); !ok) {
        Error error = std::move(ok.error());
        error.message = fmt::format("{} {}: {}", what, where(), error.message);
        giveUp(error.message);
        return fail(std::move(error));
      }
    if (passed > busyPolling)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
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
