// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_COMPILE_KERNELCACHE_H
#define MGPU_KERNELS_COMPILE_KERNELCACHE_H

// Kernels that were compiled for the host, between runs: one file each in a
// folder of the user's caches, apart from the database, which only commands
// that store something create.

#include "device/api/BlobCache.h"

#include <atomic>
#include <cstdint>

namespace mgpu::kernels {

/// Holds no file open, so that it may be used in processes that were forked,
/// and by many at once. A file is written whole or not at all, says what its
/// contents hash to, and is a miss where it is not the user's own.
class KernelCache final : public device::BlobCache {
public:
  /// Beyond `limitBytes`, what was not used for longest goes first. The folder
  /// is made when something is stored.
  explicit KernelCache(std::string folder, uint64_t limitBytes = 256 << 20)
      : folder(std::move(folder)), limitBytes(limitBytes) {}

  std::optional<device::Blob> find(const std::string &key) override;
  void store(const std::string &key, const device::Blob &value) override;

private:
  void evict() const;

  std::string folder;
  uint64_t limitBytes;
  /// Bytes stored since the folder was last looked through.
  std::atomic<uint64_t> unseen = UINT64_MAX / 2;
};

/// The folder that MGPU_KERNEL_CACHE names, else mgpu/kernels in XDG_CACHE_HOME
/// or ~/.cache. Null where it says "off", or none of them is set.
KernelCache *userKernelCache();

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_COMPILE_KERNELCACHE_H
