// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_KERNELOBJECT_H
#define MGPU_DEVICE_HOST_KERNELOBJECT_H

#include "device/api/GraphDriver.h"
#include "kernels/abi/HostKernelAbi.h"
#include "kernels/abi/KernelImage.h"
#include "kernels/ptx/Launch.h"
#include "support/HostCall.h"
#include "support/Result.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

namespace mgpu::device {

// Where the code of loaded kernels lies, so that who handles a fault can say
// whose it is.

/// `handle` is dlopen()'s; `bytes` from the object's base on are its. Gives
/// what removeKernelCode() takes. If there are a great many kernels, the last
/// are not kept.
size_t addKernelCode(std::string_view name, void *handle, uint64_t bytes);
void removeKernelCode(size_t slot);

/// The name of the kernel whose code `address` lies in, cut to some hundred
/// letters; null where it is none's. For handlers of signals.
const char *kernelNameAt(uintptr_t address);

/// Why a replay failed, as the first of its kernels said. A replay without a
/// fault takes no lock.
class KernelFault {
public:
  bool isThere() const { return some.load(std::memory_order_acquire); }
  void set(Error error) {
    const std::lock_guard guard(lock);
    if (!first)
      first = std::move(error);
    some.store(true, std::memory_order_release);
  }
  std::optional<Error> take() {
    if (!isThere())
      return std::nullopt;
    const std::lock_guard guard(lock);
    some.store(false, std::memory_order_release);
    return std::exchange(first, std::nullopt);
  }

private:
  std::mutex lock;
  std::optional<Error> first;
  std::atomic<bool> some = false;
};

/// A kernel given as PTX (encodeImage() of an image whose blob is the text). A
/// launch of it is executed with all checks of kernels/ptx.
class PtxKernel {
public:
  /// Invalid and Unsupported as kernels/ptx has them. `name` is for errors.
  static Result<std::shared_ptr<PtxKernel>>
  load(std::string_view name, std::span<const std::byte> bytes);

  /// The grid, shared bytes, parameters and memory of a node; Invalid where the
  /// arguments are not those that the entry takes.
  Result<kernels::ptx::LaunchOptions>
  launchOf(const KernelNodeParams &params) const;
  /// Blocks of a launch may see variables of the module, which each device has
  /// by itself.
  Result<void> run(DeviceId device, const kernels::ptx::LaunchOptions &options);

private:
  struct OnDevice {
    std::mutex lock;
    std::unique_ptr<kernels::ptx::Instance> instance;
  };
  kernels::KernelImage image;
  std::shared_ptr<const kernels::ptx::Program> program;
  std::mutex lock;
  std::map<int32_t, OnDevice> devices;
};

/// A kernel's shared object, loaded from memory; unloaded with the object.
/// Its headers are checked, so a damaged or foreign file is an error; its code
/// is native code and trusted like any other. Or a kernel given as PTX, or the
/// call of a registered function; neither has an entry.
class KernelObject {
public:
  static Result<KernelObject> load(std::string_view name,
                                   std::span<const std::byte> bytes);
  kernels::HostKernelEntry entry() const { return function; }
  /// Null for a shared object.
  const std::shared_ptr<PtxKernel> &ptx() const { return asPtx; }
  const std::optional<HostCall> &call() const { return asCall; }
  const kernels::HostKernelShape &shape() const { return cut; }
  /// Whether it can run a part of a grid.
  bool takesParts() const { return !isVersion1; }

  /// Whether its blocks may wait for each other.
  bool awaitsOthers() const { return isAwaiting; }

private:
  std::shared_ptr<void> library;
  std::shared_ptr<PtxKernel> asPtx;
  std::optional<HostCall> asCall;
  kernels::HostKernelEntry function = nullptr;
  bool isVersion1 = false, isAwaiting = false;
  kernels::HostKernelShape cut{{1, 1, 1}, {1, 1, 1}};
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_KERNELOBJECT_H
