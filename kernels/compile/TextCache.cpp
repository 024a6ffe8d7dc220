// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/TextCache.h"

#include "support/FileIO.h"
#include "support/JsonFields.h"
#include "support/Sha256.h"

#include <set>
#include <unistd.h>

namespace mgpu::kernels {

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
