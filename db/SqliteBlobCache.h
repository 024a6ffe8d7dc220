// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DB_SQLITEBLOBCACHE_H
#define MGPU_DB_SQLITEBLOBCACHE_H

// Compiled kernels in the tuning database.

#include "db/Database.h"
#include "device/api/BlobCache.h"

#include <mutex>

namespace mgpu::db {

/// Finds of one blob within this time count as one use: a use is a write.
inline constexpr std::chrono::hours blobUseStep{1};

struct BlobCacheOptions {
  DatabaseOptions database;
  /// Beyond it what was not used for longest goes first.
  uint64_t limitBytes = uint64_t(1) << 30;
};

/// A table of the database with a connection of its own. A blob that cannot be
/// read, or has changed, is a miss; one that cannot be written is not stored.
/// Not carried over a fork().
class SqliteBlobCache final : public device::BlobCache {
public:
  static Result<std::unique_ptr<SqliteBlobCache>>
  open(const std::string &path, const BlobCacheOptions &options = {});

  std::optional<device::Blob> find(const std::string &key) override;
  void store(const std::string &key, const device::Blob &value) override;

private:
  SqliteBlobCache(Database database, uint64_t limitBytes)
      : database(std::move(database)), limitBytes(limitBytes) {}
  Result<std::optional<device::Blob>> read(const std::string &key);
  Result<void> write(const std::string &key, const device::Blob &value);

  std::mutex mutex;
  Database database;
  uint64_t limitBytes;
};

/// The hash a sound row carries.
std::string blobHash(const std::string &key, const device::Blob &value);

/// Removes what was not used for longest until the rest fits in `limitBytes`;
/// how many went. Within a transaction of the caller's.
Result<uint64_t> evictBlobs(Database &database, uint64_t limitBytes);

} // namespace mgpu::db

#endif // MGPU_DB_SQLITEBLOBCACHE_H
