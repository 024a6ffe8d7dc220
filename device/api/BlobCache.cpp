// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/BlobCache.h"

namespace mgpu::device {

BlobCache::~BlobCache() = default;

std::optional<Blob> MemoryBlobCache::find(const std::string &key) {
  std::lock_guard lock(mutex);
  auto at = blobs.find(key);
  return at == blobs.end() ? std::nullopt : std::optional(at->second);
}

void MemoryBlobCache::store(const std::string &key, const Blob &value) {
  std::lock_guard lock(mutex);
  blobs.insert_or_assign(key, value);
}

} // namespace mgpu::device
