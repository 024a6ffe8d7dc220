// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_PTXKERNEL_H
#define MGPU_DEVICE_HOST_PTXKERNEL_H

#include "device/api/GraphDriver.h"
#include "kernels/abi/KernelImage.h"
#include "kernels/ptx/Launch.h"

#include <atomic>
#include <map>
#include <mutex>

namespace mgpu::device {

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

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_PTXKERNEL_H
