// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_KERNELOBJECT_H
#define MGPU_DEVICE_HOST_KERNELOBJECT_H

#include "device/host/PtxKernel.h"
#include "kernels/abi/HostKernelAbi.h"
#include "support/Result.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace mgpu::device {

/// A kernel's shared object, loaded from memory; unloaded with the object.
/// Its headers are checked, so a damaged or foreign file is an error; its code
/// is native code and trusted like any other. Or a kernel given as PTX, which
/// has no entry.
class KernelObject {
public:
  static Result<KernelObject> load(std::string_view name,
                                   std::span<const std::byte> bytes);
  kernels::HostKernelEntry entry() const { return function; }
  /// Null for a shared object.
  const std::shared_ptr<PtxKernel> &ptx() const { return asPtx; }
  const kernels::HostKernelShape &shape() const { return cut; }
  /// Whether it can run a part of a grid.
  bool takesParts() const { return !isVersion1; }

  /// Whether its blocks may wait for each other.
  bool awaitsOthers() const { return isAwaiting; }

private:
  std::shared_ptr<void> library;
  std::shared_ptr<PtxKernel> asPtx;
  kernels::HostKernelEntry function = nullptr;
  bool isVersion1 = false, isAwaiting = false;
  kernels::HostKernelShape cut{{1, 1, 1}, {1, 1, 1}};
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_KERNELOBJECT_H
