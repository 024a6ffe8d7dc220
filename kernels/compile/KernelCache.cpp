// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/KernelCache.h"

#include "support/FileIO.h"
#include "support/Sha256.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace mgpu::kernels {

namespace fs = std::filesystem;

/// Nobody else can have written it.
static bool isOwn(const std::string &path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & S_IWOTH) == 0;
}

static std::string sealOf(const std::string &key,
                          std::span<const std::byte> value) {
  return Sha256().addField(key).add(value).hex();
}

std::optional<device::Blob> KernelCache::find(const std::string &key) {
  const std::string path = folder + "/" + key;
  if (!isOwn(path))
    return std::nullopt;
  auto bytes = readFile(path, limitBytes);
  constexpr size_t sealBytes = 64;
  if (!bytes || bytes->size() < sealBytes)
    return std::nullopt;
  device::Blob value(bytes->begin() + sealBytes, bytes->end());
  if (std::memcmp(bytes->data(), sealOf(key, value).data(), sealBytes) != 0)
    return std::nullopt;
  std::error_code ignored; // its use cannot be noted, which is no fault of it
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return value;
}

void KernelCache::store(const std::string &key, const device::Blob &value) {
  std::error_code error;
  fs::create_directories(folder, error);
  const std::string seal = sealOf(key, value);
  const std::span<const std::byte> parts[] = {std::as_bytes(std::span(seal)),
                                              value};
  const std::string path = folder + "/" + key;
  if (!isOwn(path)) // what replaces a file has its permissions
    fs::remove(path, error);
  if (error || !writeFileAtomic(path, parts))
    return;
  // To look through the folder takes longer than to store one kernel.
  if ((unseen += value.size() + seal.size()) > limitBytes / 16) {
    unseen = 0;
    evict();
  }
}

void KernelCache::evict() const {
  struct Entry {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone; // another process may look through it, too
    const uint64_t bytes = at->file_size(gone);
    if (gone)
      continue;
    entries.push_back({at->last_write_time(gone), bytes, at->path()});
    total += bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry &entry : entries) {
    if (total <= limitBytes)
      return;
    fs::remove(entry.path, error);
    total -= entry.bytes;
  }
}

static std::string userFolder() {
  auto variable = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string named = variable("MGPU_KERNEL_CACHE"); !named.empty())
    return named == "off" ? "" : named;
  // The XDG specification says that a relative path is to be ignored.
  if (std::string caches = variable("XDG_CACHE_HOME"); caches.starts_with('/'))
    return caches + "/mgpu/kernels";
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/mgpu/kernels";
}

KernelCache *userKernelCache() {
  static std::mutex mutex;
  static std::map<std::string, KernelCache> caches; // their places stay
  const std::string folder = userFolder();
  std::lock_guard lock(mutex);
  return folder.empty() ? nullptr
                        : &caches.try_emplace(folder, folder).first->second;
}

} // namespace mgpu::kernels
