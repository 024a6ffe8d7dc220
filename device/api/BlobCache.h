// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_API_BLOBCACHE_H
#define MGPU_DEVICE_API_BLOBCACHE_H

// Where compiled kernels are kept between runs. A cache may forget, and what
// it cannot read is a miss: nothing of it is ever an error for its user.

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace mgpu::device {

using Blob = std::vector<std::byte>;

/// Thread-safe. `key` is 64 hexadecimal digits: a SHA-256 of all that decides
/// the value, so that one key never has two values.
class BlobCache {
public:
  virtual ~BlobCache();
  virtual std::optional<Blob> find(const std::string &key) = 0;
  virtual void store(const std::string &key, const Blob &value) = 0;
};

/// Lives as long as the process. db/SqliteBlobCache.h has a cache that outlives
/// it.
class MemoryBlobCache final : public BlobCache {
public:
  std::optional<Blob> find(const std::string &key) override;
  void store(const std::string &key, const Blob &value) override;

private:
  std::mutex mutex;
  std::map<std::string, Blob> blobs;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_API_BLOBCACHE_H
