// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/TextCache.h"

#include "support/FileIO.h"
#include "support/Sha256.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <unistd.h>

namespace mgpu::kernels {

namespace {

/// Appends values to a blob.
class FieldWriter {
public:
  template <typename T>
  void number(const T &value) {
    auto *bytes = reinterpret_cast<const std::byte *>(&value);
    blob.insert(blob.end(), bytes, bytes + sizeof value);
  }
  void flag(const bool &value) { number(uint8_t(value)); }
  void text(const std::string &text) {
    number(uint64_t(text.size()));
    auto *bytes = reinterpret_cast<const std::byte *>(text.data());
    blob.insert(blob.end(), bytes, bytes + text.size());
  }
  template <typename T, typename Each>
  void list(std::vector<T> &values, Each each) {
    number(uint64_t(values.size()));
    for (T &value : values)
      each(value);
  }
  template <typename T, typename Each>
  void optional(std::optional<T> &value, Each each) {
    flag(value.has_value());
    if (value)
      each(*value);
  }

  device::Blob blob;
};

/// Reads what FieldWriter wrote; from the first value that is not there on,
/// everything is empty.
class FieldReader {
public:
  explicit FieldReader(std::span<const std::byte> rest) : rest(rest) {}

  template <typename T>
  void number(T &value) {
    if (!has(sizeof value))
      return;
    std::memcpy(&value, rest.data(), sizeof value);
    rest = rest.subspan(sizeof value);
  }
  void flag(bool &value) {
    uint8_t byte = 0;
    number(byte);
    value = byte != 0;
  }
  void text(std::string &text) {
    uint64_t size = 0;
    number(size);
    if (!has(size))
      return;
    text.assign(reinterpret_cast<const char *>(rest.data()), size);
    rest = rest.subspan(size);
  }
  template <typename T, typename Each>
  void list(std::vector<T> &values, Each each) {
    uint64_t size = 0;
    number(size);
    // Each value takes a byte at least, so no length can ask for more memory
    // than the entry has.
    for (uint64_t k = 0; k < size && has(1); ++k)
      each(values.emplace_back());
    ok &= values.size() == size;
  }
  template <typename T, typename Each>
  void optional(std::optional<T> &value, Each each) {
    bool isThere = false;
    flag(isThere);
    if (isThere)
      each(value.emplace());
  }
  bool isDone() const { return ok && rest.empty(); }

private:
  bool has(uint64_t bytes) { return ok &= bytes <= rest.size(); }

  std::span<const std::byte> rest;
  bool ok = true;
};

} // namespace

// Each names all members, so that none can be added and forgotten here.

template <typename Archive>
static void visit(Archive &a, planner::KernelSpace &space) {
  auto &[target, block, maxGrid, reshapable, reason, sharedBytes, stagedBytes,
         stagedTunables, stagedPadding, stagesAreDynamic, warpTile,
         loadingWarps, registersBesideSums, choices, tunables, tiles,
         defaults] = space;
  a.number(target);
  a.number(block);
  a.number(maxGrid);
  a.flag(reshapable);
  a.text(reason);
  for (uint32_t *each :
       {&sharedBytes, &stagedBytes, &stagedTunables, &stagedPadding, &warpTile,
        &loadingWarps, &registersBesideSums})
    a.number(*each);
  a.flag(stagesAreDynamic);
  auto numbers = [&](std::vector<uint32_t> &all) {
    a.list(all, [&](uint32_t &value) { a.number(value); });
  };
  a.list(choices, [&](planner::KernelChoice &choice) {
    auto &[parameter, values, why] = choice;
    a.number(parameter);
    numbers(values);
    a.text(why);
  });
  a.list(tunables, [&](planner::KernelTunable &tunable) {
    auto &[name, values] = tunable;
    a.text(name);
    numbers(values);
  });
  a.list(tiles, [&](planner::KernelTile &tile) {
    auto &[elementBytes, along, halo] = tile;
    a.number(elementBytes);
    for (bool &each : along)
      a.flag(each);
    a.number(halo);
  });
  a.number(defaults);
}

template <typename Archive>
static void visit(Archive &a, TensorMap &map) {
  auto &[argument, offsetBytes, type, sizes, strideBytes, box] = map;
  a.number(argument);
  a.number(offsetBytes);
  a.number(type);
  a.number(sizes);
  a.number(strideBytes);
  a.number(box);
}

template <typename Archive>
static void visit(Archive &a, MatrixProduct &product) {
  auto &[factors, sums, m, n, k, batch, matrices] = product;
  a.number(factors);
  a.number(sums);
  for (uint64_t *each : {&m, &n, &k, &batch})
    a.number(*each);
  for (MatrixProduct::Matrix &matrix : matrices) {
    auto &[argument, offset, rowStride, batchStride] = matrix;
    a.number(argument);
    for (uint64_t *each : {&offset, &rowStride, &batchStride})
      a.number(*each);
  }
}

template <typename Archive>
static void visit(Archive &a, CudaText &text, bool isCandidate = false) {
  auto &[name, entry, source, reason, block, launchBlock, covers, reshapable,
         takesPart, dynamicSharedBytes, awaits, parameterBytes, tensorMaps,
         product, onlyArch, space, form, leastArch, disabled, candidates] =
      text;
  for (std::string *each :
       {&name, &entry, &source, &reason, &onlyArch, &form, &disabled})
    a.text(*each);
  for (Dim3 *each : {&block, &launchBlock, &covers})
    a.number(*each);
  a.flag(reshapable);
  a.flag(takesPart);
  a.flag(awaits);
  a.number(dynamicSharedBytes);
  a.number(leastArch);
  a.list(parameterBytes, [&](uint32_t &bytes) { a.number(bytes); });
  a.list(tensorMaps, [&](TensorMap &map) { visit(a, map); });
  a.optional(product, [&](MatrixProduct &each) { visit(a, each); });
  a.optional(space, [&](planner::KernelSpace &each) { visit(a, each); });
  if (!isCandidate) // which has none of its own
    a.list(candidates, [&](CudaText &candidate) { visit(a, candidate, true); });
}

/// Whether it is of the form that its functions take for granted.
static bool isWhole(const CudaText &text) {
  if (!text.space)
    return true;
  const planner::KernelSpace &space = *text.space;
  if (space.choices.size() != planner::numKernelParameters ||
      space.tunables.size() > planner::mostKernelTunables ||
      (space.tunables.empty() && !space.tiles.empty()))
    return false;
  for (size_t k = 0; k < space.choices.size(); ++k)
    if (space.choices[k].parameter != planner::KernelParameter(k) ||
        space.choices[k].values.empty())
      return false;
  return std::all_of(
      space.tunables.begin(), space.tunables.end(),
      [](const planner::KernelTunable &t) { return !t.values.empty(); });
}

device::Blob packTexts(const std::string &key,
                       std::span<const CudaText> texts) {
  FieldWriter writer;
  writer.text(key);
  std::vector<CudaText> copy(texts.begin(), texts.end());
  writer.list(copy, [&](CudaText &text) { visit(writer, text); });
  return std::move(writer.blob);
}

std::optional<std::vector<CudaText>> unpackTexts(const std::string &key,
                                                 const device::Blob &blob) {
  FieldReader reader(blob);
  std::string stored;
  std::vector<CudaText> texts;
  reader.text(stored);
  if (stored != key)
    return std::nullopt;
  reader.list(texts, [&](CudaText &text) { visit(reader, text); });
  if (!reader.isDone())
    return std::nullopt;
  for (const CudaText &text : texts)
    if (!isWhole(text) ||
        !std::all_of(text.candidates.begin(), text.candidates.end(), isWhole))
      return std::nullopt;
  return texts;
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
                             std::span<const Dim3> grids) {
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
    hash.addField(kernels[k].source);
    dims(kernels[k].block);
    dims(grids[k]);
    auto here = filesNamedIn(kernels[k].source);
    if (!here)
      return "";
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
                      std::span<const Dim3> grids,
                      std::span<const CudaText> texts) {
  if (!cache || key.empty())
    return;
  files.clear();
  if (keyOf(kernels, grids) == key)
    cache->store(key, packTexts(key, texts));
}

} // namespace mgpu::kernels
