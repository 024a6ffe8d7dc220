// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/KernelCache.h"

#include "support/FileIO.h"
#include "support/JsonFields.h"
#include "support/Sha256.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
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

namespace {

/// The header of an entry; the blobs of the texts and their candidates follow
/// it in their order.
struct Entry {
  std::string key;
  std::vector<CudaText> texts;
  std::vector<uint64_t> blobBytes;

  template <typename Each>
  void eachBlob(Each each) {
    for (CudaText &text : texts) {
      each(text.image.blob);
      for (CudaText &candidate : text.candidates)
        each(candidate.image.blob);
    }
  }
};

void fields(JsonFields &f, Entry &entry) {
  f("key", entry.key);
  f("texts", entry.texts);
  f("blob_bytes", entry.blobBytes);
}

} // namespace

device::Blob packTexts(const std::string &key,
                       std::span<const CudaText> texts) {
  Entry entry{key, {texts.begin(), texts.end()}, {}};
  std::string blobs;
  entry.eachBlob([&](std::string &blob) {
    entry.blobBytes.push_back(blob.size());
    blobs += blob;
  });
  return frameBytes(JsonFields::text(entry), blobs);
}

std::optional<std::vector<CudaText>> unpackTexts(const std::string &key,
                                                 const device::Blob &blob) {
  auto parts = unframeBytes(blob);
  if (!parts)
    return std::nullopt;
  auto [header, rest] = *parts;
  auto entry = JsonFields::read<Entry>("an entry", header);
  if (!entry || entry->key != key)
    return std::nullopt;
  size_t k = 0;
  bool isWhole = true;
  entry->eachBlob([&](std::string &each) {
    isWhole &=
        k < entry->blobBytes.size() && entry->blobBytes[k] <= rest.size();
    if (!isWhole)
      return;
    each = rest.substr(0, entry->blobBytes[k]);
    rest.remove_prefix(entry->blobBytes[k++]);
  });
  if (!isWhole || k != entry->blobBytes.size() || !rest.empty())
    return std::nullopt;
  return std::move(entry->texts);
}

std::optional<std::vector<std::string>> filesNamedIn(std::string_view module) {
  std::set<std::string, std::less<>> found;
  // A location is "file":line:column.
  for (size_t at = 0; (at = module.find('"', at)) != std::string_view::npos;) {
    size_t begin = at + 1, end = begin;
    while (end < module.size() && module[end] != '"')
      end += module[end] == '\\' ? 2 : 1;
    if (end >= module.size())
      return std::nullopt;
    at = end + 1;
    if (at + 1 >= module.size() || module[at] != ':' || module[at + 1] < '0' ||
        module[at + 1] > '9')
      continue;
    std::string_view name = module.substr(begin, end - begin);
    if (name.find('\\') != std::string_view::npos)
      return std::nullopt;
    if (!found.contains(name))
      found.emplace(name);
  }
  return std::vector<std::string>(found.begin(), found.end());
}

const std::string &TextCache::hashOfFile(const std::string &path) {
  auto [at, isNew] = files.try_emplace(path);
  if (!isNew)
    return at->second;
  if (::access(path.c_str(), F_OK) != 0) {
    at->second = "absent";
  } else if (fileSize(path)) {
    if (auto bytes = readFile(path))
      at->second = Sha256().add(*bytes).hex();
  }
  return at->second;
}

std::string TextCache::keyOf(std::span<const planner::KernelSpec> kernels,
                             std::span<const planner::LaunchFacts> facts) {
  if (!cache || maker.build.empty())
    return "";
  Sha256 hash;
  auto number = [&](uint64_t value) { hash.addField(std::to_string(value)); };
  auto dims = [&](Dim3 d) {
    for (uint32_t each : {d.x, d.y, d.z})
      number(each);
  };
  hash.addField("cuda texts").addField(maker.build).addField(maker.options);
  std::set<std::string> named;
  number(kernels.size());
  for (size_t k = 0; k < kernels.size(); ++k) {
    hash.addField(kernels[k].name).addField(kernels[k].location);
    dims(kernels[k].block);
    dims(facts[k].maxGrid);
    number(facts[k].alignment);
    number(facts[k].unwritten.size());
    for (bool each : facts[k].unwritten)
      number(each);
    number(facts[k].steadyBytes.size());
    for (uint64_t each : facts[k].steadyBytes)
      number(each);
    if (const planner::CudaFile *file = kernels[k].cudaFile()) {
      hash.addField(JsonFields::text(*file)).addField(file->text);
      continue;
    }
    auto source = kernels[k].hostText();
    auto here = source ? filesNamedIn(**source) : std::nullopt;
    if (!here)
      return "";
    hash.addField(**source);
    named.insert(here->begin(), here->end());
  }
  for (const std::string &path : named) {
    const std::string &contents = hashOfFile(path);
    if (contents.empty())
      return "";
    hash.addField(path).addField(contents);
  }
  return hash.hex();
}

std::optional<std::vector<CudaText>>
TextCache::find(const std::string &key,
                std::span<const planner::KernelSpec> kernels) {
  if (!cache || key.empty())
    return std::nullopt;
  auto blob = cache->find(key);
  if (!blob)
    return std::nullopt;
  auto texts = unpackTexts(key, *blob);
  if (texts && texts->size() != kernels.size())
    return std::nullopt;
  return texts;
}

void TextCache::store(const std::string &key,
                      std::span<const planner::KernelSpec> kernels,
                      std::span<const planner::LaunchFacts> facts,
                      std::span<const CudaText> texts) {
  if (!cache || key.empty())
    return;
  files.clear();
  if (keyOf(kernels, facts) == key)
    cache->store(key, packTexts(key, texts));
}

} // namespace mgpu::kernels
