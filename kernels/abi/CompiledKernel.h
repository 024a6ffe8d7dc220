// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_ABI_COMPILEDKERNEL_H
#define MGPU_KERNELS_ABI_COMPILEDKERNEL_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mgpu::kernels {

/// The resources of one entry function of a cubin, as ptxas reports them.
struct EntryUsage {
  std::string name;
  uint32_t registers = 0; ///< per thread
  uint32_t barriers = 0;
  uint32_t stackBytes = 0;      ///< per thread, in local memory
  uint32_t spillStoreBytes = 0; ///< per thread
  uint32_t spillLoadBytes = 0;
  uint32_t sharedBytes = 0;   ///< per block, static; without the driver's own
  uint32_t constantBytes = 0; ///< bank 0: parameters; 0 where not reported
};

/// A program for one architecture. Holds only what was compiled: loading it is
/// the business of a device.
struct CompiledKernel {
  std::vector<std::byte> cubin;
  std::string log; ///< the compiler's and ptxas's words
  std::vector<EntryUsage> entries;
  bool fromCache = false;
  double compileMs = 0; ///< time of this call; 0 from the cache

  /// The entry of that name, or null.
  const EntryUsage *find(const std::string &name) const {
    for (const EntryUsage &entry : entries)
      if (entry.name == name)
        return &entry;
    return nullptr;
  }
};

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_ABI_COMPILEDKERNEL_H
