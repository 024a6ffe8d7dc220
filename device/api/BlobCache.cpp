// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/api/BlobCache.h"

#include "support/FileIO.h"
#include "support/Sha256.h"

#include <cstring>
#include <filesystem>
#include <system_error>

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

/// Bytes of the hash at the front of a file.
static constexpr size_t hashBytes = 64;

/// A key that could leave the folder is no key.
static bool isKey(const std::string &key) {
  return key.size() == 64 &&
         key.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<Blob> DirectoryBlobCache::find(const std::string &key) {
  std::error_code error;
  std::string path = folder + "/" + key;
  if (!isKey(key) || !std::filesystem::is_regular_file(path, error))
    return std::nullopt;
  Result<Blob> file = readFile(path, uint64_t(1) << 30);
  if (!file || file->size() < hashBytes)
    return std::nullopt;
  Blob value(file->begin() + hashBytes, file->end());
  std::string hash = Sha256().add(value).hex();
  if (std::memcmp(hash.data(), file->data(), hashBytes) != 0)
    return std::nullopt;
  return value;
}

void DirectoryBlobCache::store(const std::string &key, const Blob &value) {
  std::error_code error;
  if (!isKey(key))
    return;
  std::filesystem::create_directories(folder, error);
  std::string hash = Sha256().add(value).hex();
  std::span<const std::byte> pieces[] = {std::as_bytes(std::span(hash)), value};
  // A full disk costs the next run a compilation, no more.
  (void)writeFileAtomic(folder + "/" + key, pieces);
}

} // namespace mgpu::device
