// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "db/SqliteBlobCache.h"
#include "db/Statement.h"
#include "support/Sha256.h"
#include "tests/unit/db/TempFolder.h"

#include <gtest/gtest.h>

#include <thread>

namespace mgpu::db {
namespace {

device::Blob blobOf(std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return device::Blob(bytes.begin(), bytes.end());
}

std::string keyOf(std::string_view text) { return Sha256().add(text).hex(); }

std::unique_ptr<SqliteBlobCache> openCache(const std::string &path,
                                           uint64_t limit = 1 << 20) {
  BlobCacheOptions options;
  options.limitBytes = limit;
  auto cache = SqliteBlobCache::open(path, options);
  EXPECT_TRUE(cache) << cache.error().message;
  return std::move(*cache);
}

void change(const std::string &path, const std::string &sql) {
  auto database = Database::open(path);
  ASSERT_TRUE(database) << database.error().message;
  auto done = database->execute(sql);
  ASSERT_TRUE(done) << done.error().message;
}

TEST(SqliteBlobCache, FindsWhatWasStoredByAnyone) {
  TempFolder folder;
  auto cache = openCache(folder / "a.db");
  EXPECT_FALSE(cache->find(keyOf("a")));
  cache->store(keyOf("a"), blobOf("value"));
  EXPECT_EQ(cache->find(keyOf("a")), blobOf("value"));
  auto other = openCache(folder / "a.db");
  EXPECT_EQ(other->find(keyOf("a")), blobOf("value"));
  other->store(keyOf("a"), blobOf(""));
  EXPECT_EQ(cache->find(keyOf("a")), blobOf(""));
  std::string zeros(70'000, '\0');
  cache->store(keyOf("b"), blobOf(zeros));
  EXPECT_EQ(other->find(keyOf("b")), blobOf(zeros));
}

TEST(SqliteBlobCache, LiesInTheFileOfTheResults) {
  TempFolder folder;
  auto store = TuningStore::open(folder / "a.db");
  ASSERT_TRUE(store);
  auto cache = openCache(folder / "a.db");
  ASSERT_TRUE(store->record(problemOf("n=1"), okTrial("tile=1", 1)));
  cache->store(keyOf("a"), blobOf("value"));
  EXPECT_EQ(store->trials(problemOf("n=1"))->trials.size(), 1u);
  EXPECT_EQ(cache->find(keyOf("a")), blobOf("value"));
}

TEST(SqliteBlobCache, ADamagedValueIsAMiss) {
  TempFolder folder;
  auto cache = openCache(folder / "a.db");
  for (const char *name : {"a", "b", "c"})
    cache->store(keyOf(name), blobOf(name));
  change(folder / "a.db",
         "UPDATE blobs SET value = x'00' WHERE key = '" + keyOf("a") + "'");
  // Another key's value, hash and all, is not this one's.
  change(folder / "a.db",
         "UPDATE blobs SET (value, hash) = (SELECT value, hash FROM blobs "
         "WHERE key = '" +
             keyOf("c") + "') WHERE key = '" + keyOf("b") + "'");
  EXPECT_FALSE(cache->find(keyOf("a")));
  EXPECT_FALSE(cache->find(keyOf("b")));
  EXPECT_EQ(cache->find(keyOf("c")), blobOf("c"));
  cache->store(keyOf("a"), blobOf("a"));
  EXPECT_EQ(cache->find(keyOf("a")), blobOf("a"));
}

TEST(SqliteBlobCache, WhatWasNotUsedForLongestGoesFirst) {
  TempFolder folder;
  auto cache = openCache(folder / "a.db", 3000);
  std::string kilobyte(1000, 'x');
  for (const char *name : {"a", "b", "c"})
    cache->store(keyOf(name), blobOf(kilobyte));
  // Two hours ago, "a" first of them; then "a" is used again.
  change(folder / "a.db", "UPDATE blobs SET used_ms = used_ms - 7200000");
  change(folder / "a.db", "UPDATE blobs SET used_ms = used_ms - 9 WHERE key "
                          "= '" +
                              keyOf("a") + "'");
  EXPECT_TRUE(cache->find(keyOf("a")));
  change(folder / "a.db", "UPDATE blobs SET used_ms = used_ms - 5 WHERE key "
                          "= '" +
                              keyOf("b") + "'");
  cache->store(keyOf("d"), blobOf(kilobyte));
  EXPECT_TRUE(cache->find(keyOf("a")));
  EXPECT_FALSE(cache->find(keyOf("b")));
  EXPECT_TRUE(cache->find(keyOf("c")));
  EXPECT_TRUE(cache->find(keyOf("d")));
  cache->store(keyOf("e"), blobOf(std::string(3001, 'x')));
  EXPECT_FALSE(cache->find(keyOf("e")));
  EXPECT_TRUE(cache->find(keyOf("d"))) << "what cannot fit evicts nothing";
}

TEST(SqliteBlobCache, TakesSeveralThreads) {
  TempFolder folder;
  auto cache = openCache(folder / "a.db");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 25; ++k) {
        std::string text = std::to_string(t * 5 + k);
        cache->store(keyOf(text), blobOf(text));
        EXPECT_EQ(cache->find(keyOf(text)), blobOf(text));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(SqliteBlobCache, AReadOnlyFileIsReadAndNotWritten) {
  TempFolder folder;
  openCache(folder / "a.db")->store(keyOf("a"), blobOf("value"));
  change(folder / "a.db", "UPDATE blobs SET used_ms = 1");
  BlobCacheOptions options;
  options.database.access = Access::ReadOnly;
  auto cache = SqliteBlobCache::open(folder / "a.db", options);
  ASSERT_TRUE(cache) << cache.error().message;
  EXPECT_EQ((*cache)->find(keyOf("a")), blobOf("value"));
  (*cache)->store(keyOf("b"), blobOf("value"));
  EXPECT_FALSE((*cache)->find(keyOf("b")));
}

} // namespace
} // namespace mgpu::db
