// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/SqliteBlobCache.h"

#include "db/Database.h"
#include "db/Schema.h"
#include "db/Statement.h"
#include "support/Clock.h"
#include "support/Sha256.h"

namespace mgpu::db {

std::string blobHash(const std::string &key, const device::Blob &value) {
  return Sha256().addField(key).add(value).hex();
}

Result<uint64_t> evictBlobs(Database &database, uint64_t limitBytes) {
  MGPU_TRY_ASSIGN(int64_t total,
                  database.queryInteger("SELECT coalesce(sum(bytes), 0) FROM "
                                        "blobs"));
  if (total < 0 || uint64_t(total) <= limitBytes)
    return 0;
  uint64_t rest = uint64_t(total), gone = 0;
  while (rest > limitBytes) {
    MGPU_TRY_ASSIGN(Statement oldest,
                    Statement::prepare(database,
                                       "SELECT key, bytes FROM blobs ORDER BY "
                                       "used_ms LIMIT 1"));
    MGPU_TRY_ASSIGN(bool row, oldest.step());
    if (!row)
      break;
    std::string key = oldest.text(0);
    rest -= std::min(rest, uint64_t(oldest.integer(1)));
    oldest.reset();
    MGPU_TRY_ASSIGN(
        Statement remove,
        Statement::prepare(database, "DELETE FROM blobs WHERE key = ?"));
    MGPU_TRY(remove.bind(key).run());
    ++gone;
  }
  return gone;
}

Result<std::unique_ptr<SqliteBlobCache>>
SqliteBlobCache::open(const std::string &path,
                      const BlobCacheOptions &options) {
  MGPU_TRY_ASSIGN(Database database, openMigrated(path, options.database));
  // Blobs that a power cut takes are compiled again. Without a log it could
  // take more than that.
  MGPU_TRY_ASSIGN(std::string journal, database.journalMode());
  if (journal == "wal" && !database.isReadOnly())
    MGPU_TRY(database.execute("PRAGMA synchronous=NORMAL"));
  return std::unique_ptr<SqliteBlobCache>(
      new SqliteBlobCache(std::move(database), options.limitBytes));
}

Result<std::optional<device::Blob>>
SqliteBlobCache::read(const std::string &key) {
  MGPU_TRY_ASSIGN(Statement query,
                  Statement::prepare(database, "SELECT used_ms, hash, value "
                                               "FROM blobs WHERE key = ?"));
  MGPU_TRY_ASSIGN(bool row, query.bind(key).step());
  if (!row)
    return std::nullopt;
  int64_t used = query.integer(0), now = unixMilliseconds();
  device::Blob value = query.blob(2);
  if (query.text(1) != blobHash(key, value))
    return std::nullopt;
  query.reset();
  if (now - used > std::chrono::milliseconds(blobUseStep).count() &&
      !database.isReadOnly()) {
    // The value is good whether or not its use can be noted.
    auto update = Statement::prepare(
        database, "UPDATE blobs SET used_ms = ? WHERE key = ?");
    if (update)
      (void)update->bind(now).bind(key).run();
  }
  return value;
}

Result<void> SqliteBlobCache::write(const std::string &key,
                                    const device::Blob &value) {
  if (value.size() > limitBytes)
    return {};
  MGPU_TRY_ASSIGN(Transaction transaction, Transaction::write(database));
  MGPU_TRY_ASSIGN(Statement insert,
                  Statement::prepare(database,
                                     "INSERT OR REPLACE INTO blobs(key, "
                                     "used_ms, bytes, hash, value) "
                                     "VALUES(?, ?, ?, ?, ?)"));
  MGPU_TRY(insert.bind(key)
               .bind(unixMilliseconds())
               .bind(int64_t(value.size()))
               .bind(blobHash(key, value))
               .bind(value)
               .run());
  MGPU_TRY(evictBlobs(database, limitBytes));
  return transaction.commit();
}

std::optional<device::Blob> SqliteBlobCache::find(const std::string &key) {
  std::lock_guard lock(mutex);
  auto value = read(key);
  return value ? std::move(*value) : std::nullopt;
}

void SqliteBlobCache::store(const std::string &key, const device::Blob &value) {
  std::lock_guard lock(mutex);
  (void)write(key, value);
}

} // namespace mgpu::db
