// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_GRAPH_CUDASTATE_H
#define MGPU_DEVICE_CUDA_GRAPH_CUDASTATE_H

// A CUDA driver, its graphs and their executables share the GPU's context, its
// memory and its kernels. The last of them to go closes it, so executables are
// destroyed before libraries, those before memory, and memory before the
// context.

#include "device/api/AddressMap.h"
#include "device/cuda/api/CublasLtProducts.h"
#include "device/cuda/api/CudaError.h"
#include "device/cuda/api/CudaOptions.h"
#include "device/cuda/api/CusparseProducts.h"
#include "device/cuda/cupti/CuptiSession.h"
#include "device/cuda/nccl/Communicators.h"
#include "kernels/abi/CubinElf.h"
#include "kernels/abi/KernelImage.h"

#include <map>
#include <mutex>
#include <set>

namespace mgpu::device {

/// A kernel ready to be a graph node.
struct LoadedKernel {
  CUkernel kernel = nullptr;
  kernels::KernelImage launch; ///< without the blob
  std::vector<size_t> parameterSizes;
};

/// While it lives, a capture under way in this process forbids this thread no
/// calls, and is not spoiled by them: what they do is no part of it.
class BesideCaptures {
public:
  explicit BesideCaptures(const CudaApi &api) : api(api) {
    code = api.cuThreadExchangeStreamCaptureMode(&mode);
  }
  ~BesideCaptures() {
    if (code == CUDA_SUCCESS)
      api.cuThreadExchangeStreamCaptureMode(&mode);
  }
  BesideCaptures(const BesideCaptures &) = delete;
  BesideCaptures &operator=(const BesideCaptures &) = delete;
  CUresult code;

private:
  const CudaApi &api;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
};

class CudaState {
public:
  static Result<std::shared_ptr<CudaState>>
  open(std::shared_ptr<const CudaApi> api, const CudaOptions &options,
       std::shared_ptr<const NcclApi> nccl, CublasLtOpener openProducts);
  ~CudaState();
  CudaState(const CudaState &) = delete;
  CudaState &operator=(const CudaState &) = delete;

  /// Makes the GPU's context current for a scope and then the caller's again.
  class Current {
  public:
    explicit Current(CudaState &state);
    ~Current();
    Current(const Current &) = delete;
    Current &operator=(const Current &) = delete;
    Result<void> entered;

  private:
    CudaState &state;
    bool wasCurrent = false; ///< before, as in a thread of ours
  };

  /// An Error if `code` is one; `where` says what it was for. A code after
  /// which the context is lost is remembered.
  Result<void> check(CUresult code, std::string_view call,
                     std::string_view where);
  /// The first sentence that made the context unusable, as an error.
  Result<void> checkAlive() const;
  bool isLost() const;
  void setLost(const std::string &reason);
  /// setLost(), and what other ranks wait for here ends.
  void giveUp(const std::string &reason);

  /// Zeroed and 256-aligned: pinned host memory that the GPU can reach, or
  /// the GPU's. `purpose` is for the error.
  Result<std::byte *> allocate(DeviceId device, uint64_t sizeBytes,
                               std::string_view purpose);
  /// The purpose of a device's memory, for allocate().
  static std::string memoryOf(DeviceId device) {
    return "the memory of device " + std::to_string(device.value);
  }
  /// Driver::allocateArena().
  Result<std::byte *> allocateArena(DeviceId device, uint64_t sizeBytes,
                                    uint64_t mostBytes);
  /// The memory of allocateArena(), a window of NCCL's if that is asked for.
  Result<std::byte *> makeArena(DeviceId device, uint64_t sizeBytes,
                                uint64_t mostBytes);
  /// Driver::adopt(), forget() and transfer() (GpuMemory.cpp).
  Result<void> adopt(DeviceId device, std::span<std::byte> memory);
  void forget(std::byte *memory);
  Result<void> transfer(std::byte *to, const std::byte *from, uint64_t bytes);
  /// Memory of the first device, or the host's, for as long as somebody holds
  /// it; then it is lent again. So graphs that are made anew with other
  /// addresses, round after round, need no more than the first two.
  Result<std::shared_ptr<std::byte>> borrow(DeviceId owner, uint64_t sizeBytes,
                                            std::string_view purpose);
  /// A word of the first device's that holds 1.
  Result<const std::byte *> wordOfOne();
  /// 8 bytes of the first device's that hold 0.
  Result<const std::byte *> zeros();
  Result<KernelHandle> loadKernel(std::string_view name,
                                  std::span<const std::byte> object);
  /// The entry of a program of the target's own, compiled when first asked for.
  Result<CUkernel> deviceKernel(const std::string &entry,
                                const std::string &source);
  /// cuBLASLt, opened when first asked for; null where there is none, which is
  /// said.
  Result<Products *> products();
  /// Chooses how a product is computed within its workspace and computes it
  /// once, into memory that nobody reads: what a library loads when it first
  /// does a thing is then loaded before any capture. False where cuBLASLt has
  /// no algorithm for it.
  Result<bool> prepareProduct(ProductCall &call, std::string_view name);
  /// cuSPARSE, as products().
  Result<SparseProducts *> sparseProducts();
  void setSparse(CusparseOpener open) { openSparse = std::move(open); }
  /// How much memory a call of it needs; nothing where it has no way for it.
  Result<std::optional<uint64_t>> sparseBytes(const SparseCall &call,
                                              std::string_view name);
  /// Tells the user, once, by CudaOptions::warn.
  void warnOnce(const std::string &sentence);
  /// Returns once the work of `stream` is done; `what` is for the error. Among
  /// several ranks a failure of another one ends it, too.
  Result<void> wait(CUstream stream, std::string_view what);

  /// Queues the graph behind the work of `on`, a stream of the caller's in the
  /// primary context, and behind what was queued before; `values` are written
  /// in between (QueuedWork.cpp). Unsupported while `on` is captured.
  Result<void> queue(CUstream on, CUgraphExec graph,
                     std::span<const HostValue> values);
  /// Queues a launch in a stream of ours, once the one that queueNext() queued
  /// the time before last is done.
  Result<void> queueNext(CUgraphExec graph, std::span<const HostValue> values);
  /// Returns once all that was queued is done.
  Result<void> finishQueued();

  /// Timed replays use CUPTI from here on, or events because of the error.
  void setCupti(Result<std::shared_ptr<CuptiSession>> session);
  void giveUpCupti(const std::string &reason) {
    setCupti(fail(ErrorKind::Absent, reason));
  }
  /// Null: events.
  CuptiSession *cupti() const { return cuptiSession.get(); }
  std::string timedBy() const;
  /// Warns where events time what CUPTI was to.
  void sayEvents();

  // Among several ranks.
  std::optional<DeviceId> onlyDevice() const { return options.only; }
  Result<GroupId> makeGroupId();
  Result<void> join(std::span<const DeviceGroup> groups);
  Result<void> adoptHost(std::span<std::byte> memory, bool isPinned);
  /// Makes a call once outside of any graph, if its like was not yet. Memory
  /// other than arenas keeps what it holds.
  Result<void> warmUp(const NcclCall &call, std::string_view name);
  /// The devices whose memory and work are here.
  bool isHere(DeviceId device) const {
    return options.only
               ? device == *options.only
               : device.value >= 0 && device.value < int32_t(numDevices);
  }
  DeviceId firstDevice() const { return options.only.value_or(DeviceId{0}); }
  std::string devicesText() const;

  /// Both ends of a programmatic edge are of sm_90 or later: those before have
  /// no griddepcontrol (PTX ISA).
  bool awaits(const LoadedKernel &kernel) const {
    return kernel.launch.awaits && hasEarlyLaunches();
  }
  bool hasEarlyLaunches() const { return major >= 9; }
  std::string arch() const;
  std::string description() const;
  /// "on cuda:0/4" for error texts.
  const std::string &where() const { return whereText; }

  const std::shared_ptr<const CudaApi> api;
  const uint32_t numDevices;
  CUcontext context = nullptr;
  int multiprocessors = 1;
  int major = 0, minor = 0; ///< compute capability
  int lowestPriority = 0, highestPriority = 0;
  AddressMap memory;
  std::vector<LoadedKernel> kernels;
  std::unique_ptr<Communicators> communicators; ///< null: all is on this GPU

private:
  CudaState(std::shared_ptr<const CudaApi> api, const CudaOptions &options,
            std::shared_ptr<const NcclApi> nccl, CublasLtOpener openProducts);
  Result<void> openGpu();
  Result<void> checkNotCaptured(CUstream on, const std::string &place);
  Result<void> queueIn(CUstream on, const std::string &place, CUgraphExec graph,
                       std::span<const HostValue> values);
  Result<void> write(CUstream on, const HostValue &value,
                     const std::string &place);
  Result<void> fill(CUdeviceptr memory, unsigned char value, uint64_t bytes);
  /// allocate() of the host's memory, and of the GPU's.
  Result<std::byte *> allocatePinned(uint64_t sizeBytes,
                                     std::string_view purpose);
  Result<std::byte *> allocateOnGpu(uint64_t sizeBytes,
                                    std::string_view purpose);
  /// How much would fit on the GPU, for an error.
  std::string freeText() const;
  struct LoadedLibrary {
    CUlibrary handle = nullptr;
    kernels::Cubin cubin; ///< what can be read of it
  };
  Result<const LoadedLibrary *> loadLibrary(std::string_view name,
                                            std::span<const std::byte> cubin);
  Result<CUkernel> loadEntry(CUlibrary library, const std::string &entry,
                             std::string_view name);
  /// Shows what kernels have printed: CUDA empties its buffer when it is waited
  /// for, and not when a stream is asked.
  Result<void> showPrinted(CUstream stream, std::string_view what);
  Result<void> setSharedBytes(CUkernel kernel, uint32_t bytes,
                              std::string_view name);

  CudaOptions options;
  std::shared_ptr<const NcclApi> nccl;
  CublasLtOpener openProducts; ///< null: there is none, or it was asked
  std::unique_ptr<Products> theProducts;
  CusparseOpener openSparse; ///< as openProducts
  std::unique_ptr<SparseProducts> theSparse;
  std::unique_ptr<CudaLog> log;
  CUdevice device = 0;
  std::string gpuName, whereText;
  CUstream stream = nullptr;       ///< for zeroing memory, and to wait in
  CUevent queued = nullptr;        ///< after the last graph that was queued
  bool isQueued = false;           ///< and finishQueued() has not been called
  std::array<CUstream, 2> turns{}; ///< of queueNext(), made when first used
  bool mayPrint = false;           ///< a kernel that was loaded calls printf
  size_t turn = 0;                 ///< whose it is
  std::vector<CUdeviceptr> deviceMemory;
  std::vector<std::byte *> windows; ///< memory of NCCL's
  std::vector<std::span<std::byte>> arenas;
  uint64_t deviceBytes = 0; ///< its bytes, all together
  /// Lent before and not now, by whether it is the host's, and size. Outlives
  /// us in the hands of a borrower.
  using Spare = std::multimap<std::pair<bool, uint64_t>, std::byte *>;
  std::shared_ptr<Spare> spare = std::make_shared<Spare>();
  std::byte *oneWord = nullptr, *zeroBytes = nullptr;
  std::vector<void *> hostMemory;
  std::map<std::string, LoadedLibrary> libraries; ///< by SHA-256 of the cubin
  std::map<std::string, CUkernel> deviceKernels;
  std::map<CUkernel, uint32_t> sharedBytes; ///< dynamic, as asked for
  std::vector<std::byte *> adopted;         ///< host memory of the caller's
  std::set<std::byte *> callers; ///< the GPU's memory of the caller's
  std::set<std::string> warned;  ///< what warnOnce() has said
  std::set<std::string> warm;    ///< kinds of NCCL's calls made once
  std::shared_ptr<CuptiSession> cuptiSession;
  std::string withoutCupti = "it was not asked for";
  mutable std::mutex lostMutex;
  std::string lost;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_GRAPH_CUDASTATE_H
