// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/KernelSpace.h"

#include "kernels/abi/LaunchBlocks.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace mgpu::planner {

using P = KernelParameter;

static constexpr uint32_t mostThreads = 1024; // of a block, of every GPU
static constexpr uint32_t warpSize = 32;

static constexpr std::string_view parameterNames[numKernelParameters] = {
    "block_x", "block_y",    "block_z", "items",  "vector",
    "unroll",  "min_blocks", "tile_x",  "tile_y", "cluster_x"};

std::string_view toString(KernelParameter parameter) {
  return parameterNames[size_t(parameter)];
}

std::string toText(const KernelConfig &config) {
  std::string text;
  for (size_t k = 0; k < numKernelParameters; ++k)
    text += fmt::format("{}{}={}", k ? " " : "", parameterNames[k],
                        config.values[k]);
  for (uint32_t k = 0; k < config.numTunables; ++k)
    text += fmt::format("{}{}", k ? "," : " tunables=", config.tunables[k]);
  return text;
}

/// "16,4"; false where that is not a list of so many numbers below 2^32.
static bool readTunables(std::string_view text, KernelConfig &out) {
  out.tunables = {};
  out.numTunables = 0;
  while (out.numTunables < mostKernelTunables) {
    const char *last = text.data() + text.size();
    uint32_t value = 0;
    auto [end, error] = std::from_chars(text.data(), last, value);
    if (error != std::errc() || (end != last && *end != ','))
      return false;
    out.tunables[out.numTunables++] = value;
    if (end == last)
      return true;
    text.remove_prefix(end - text.data() + 1);
  }
  return false;
}

Result<KernelConfig> parseKernelConfig(std::string_view text,
                                       KernelConfig base) {
  while (true) {
    size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos)
      return base;
    text.remove_prefix(begin);
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    size_t equals = word.find('=');
    if (word.substr(0, equals) == "tunables" && equals != word.npos) {
      if (!readTunables(word.substr(equals + 1), base))
        return fail(ErrorKind::Usage,
                    fmt::format("'{}' needs up to {} numbers below 2^32", word,
                                mostKernelTunables));
      continue;
    }
    auto name = std::find(std::begin(parameterNames), std::end(parameterNames),
                          word.substr(0, equals));
    if (equals == std::string_view::npos || name == std::end(parameterNames))
      return fail(ErrorKind::Usage,
                  fmt::format("'{}' sets no parameter of a kernel; use NAME="
                              "VALUE with the names {}",
                              word, fmt::join(parameterNames, ", ")));
    uint32_t value = 0;
    const char *last = word.data() + word.size();
    auto [end, error] = std::from_chars(word.data() + equals + 1, last, value);
    if (error != std::errc() || end != last)
      return fail(ErrorKind::Usage,
                  fmt::format("'{}' needs a number below 2^32", word));
    base.values[size_t(name - std::begin(parameterNames))] = value;
  }
}

Dim3 KernelSpace::covered(const KernelConfig &config) const {
  if (target == KernelTarget::Host)
    return {config[P::BlockX] * config[P::Items], config[P::BlockY],
            config[P::BlockZ]};
  return {config[P::BlockX] * config[P::Items] * config[P::Vector] *
              std::max(config[P::TileX], 1u),
          (config[P::BlockY] - std::min(loadingWarps, config[P::BlockY])) *
              std::max(config[P::TileY], 1u),
          config[P::BlockZ]};
}

/// Of the tiles of one block; a GPU gives shared memory in units.
static uint64_t bytesOfTiles(const KernelSpace &space,
                             const KernelConfig &config) {
  constexpr uint64_t alignment = 16, unit = 128;
  const uint64_t threads[] = {uint64_t(config[P::BlockX]) * config[P::Vector],
                              config[P::BlockY], config[P::BlockZ]};
  uint64_t all = 0;
  for (const KernelTile &tile : space.tiles) {
    uint64_t bytes = tile.elementBytes;
    for (size_t k = 0; k < 3; ++k)
      bytes *= tile.along[k] ? threads[k] + tile.halo[k] : 1;
    all += (bytes + alignment - 1) / alignment * alignment;
  }
  return (all + unit - 1) / unit * unit;
}

uint64_t KernelSpace::sharedBytesOf(const KernelConfig &config) const {
  if (!tiles.empty() && config.numTunables == tunables.size() &&
      config.tunables[config.numTunables - 1] != 0)
    return sharedBytes + bytesOfTiles(*this, config);
  if (stagedBytes == 0)
    return sharedBytes;
  // The padding keeps a column of a tile in all banks (kernels/cuda).
  Dim3 unit = covered(config);
  uint64_t bytes =
      uint64_t(stagedBytes) * (uint64_t(unit.x) + unit.y + stagedPadding);
  for (uint32_t k = 0; k < stagedTunables; ++k)
    bytes *= config.tunables[k];
  return sharedBytes + bytes;
}

Dim3 KernelSpace::launchGrid(const KernelConfig &config,
                             Dim3 sourceGrid) const {
  const LaunchBlocks blocks =
      launchBlocks(sourceGrid, block, covered(config), config[P::ClusterX]);
  return {uint32_t(blocks.x), uint32_t(blocks.y), uint32_t(blocks.z)};
}

namespace {

/// What a configuration breaks, if anything.
struct Broken {
  const char *rule = nullptr;
  std::string reason;
};

Broken findBroken(const KernelSpace &space, const KernelConfig &config) {
  if (config == space.defaults)
    return {};
  for (size_t k = 0; k < numKernelParameters; ++k) {
    const KernelChoice &choice = space.choices[k];
    if (std::binary_search(choice.values.begin(), choice.values.end(),
                           config.values[k]))
      continue;
    return {"values offered",
            fmt::format("{} = {} is not one of {}{}{}",
                        toString(choice.parameter), config.values[k],
                        fmt::join(choice.values, ", "),
                        choice.reason.empty() ? "" : ": ", choice.reason)};
  }
  if (config.numTunables != space.tunables.size())
    return {"a value for each tunable",
            fmt::format("{} values are given for {} tunables",
                        config.numTunables, space.tunables.size())};
  for (size_t k = 0; k < space.tunables.size(); ++k) {
    const auto &[name, values] = space.tunables[k];
    if (std::find(values.begin(), values.end(), config.tunables[k]) ==
        values.end())
      return {"values offered",
              fmt::format("{} = {} is not one of {}", name, config.tunables[k],
                          fmt::join(values, ", "))};
  }
  uint64_t threads = config.block().volume();
  if (threads > mostThreads)
    return {"threads of a block",
            fmt::format("{} x {} x {} are {} threads of a block; at most {}",
                        config[P::BlockX], config[P::BlockY], config[P::BlockZ],
                        threads, mostThreads)};
  if (space.target == KernelTarget::Cuda && space.reshapable &&
      threads % warpSize != 0)
    return {"whole warps",
            fmt::format("{} threads of a block leave lanes of a warp of {} "
                        "without work",
                        threads, warpSize)};
  Dim3 unit = space.covered(config);
  uint64_t covers[3] = {uint64_t(unit.x) * config[P::ClusterX], unit.y, unit.z};
  uint64_t extents[3] = {uint64_t(space.maxGrid.x) * space.block.x,
                         uint64_t(space.maxGrid.y) * space.block.y,
                         uint64_t(space.maxGrid.z) * space.block.z};
  uint32_t source[3] = {space.block.x, space.block.y, space.block.z};
  for (size_t k = 0; k < 3; ++k)
    if (covers[k] > source[k] && covers[k] >= 2 * extents[k])
      return {
          "no more than the launch",
          fmt::format("a {} covers {} threads along {} of a launch of "
                      "{}: half of it or more has no work",
                      k == 0 && config[P::ClusterX] > 1 ? "cluster" : "block",
                      covers[k], "xyz"[k], extents[k])};
  if (!space.reshapable && space.target == KernelTarget::Host &&
      unit != space.block)
    return {"the source's block",
            fmt::format("{} x {} items are not the {} threads along x of the "
                        "source's block, which the kernel keeps",
                        config[P::BlockX], config[P::Items], space.block.x)};
  if (!space.reshapable && space.target == KernelTarget::Cuda &&
      space.choice(P::Vector).values.size() > 1 &&
      config[P::BlockX] * config[P::Vector] != space.block.x)
    return {"the source's block",
            fmt::format("{} threads that are {} each are not the {} threads "
                        "along x of the source's block, which the kernel keeps",
                        config[P::BlockX], config[P::Vector], space.block.x)};
  if (space.warpTile != 0) {
    uint32_t warps = config[P::BlockY],
             above = config.tunables[config.numTunables - 1];
    uint32_t beside = above ? warps / above : 0;
    if (beside * above != warps || unit.x % (beside * space.warpTile) != 0 ||
        unit.y % (above * space.warpTile) != 0)
      return {"whole tiles of a warp",
              fmt::format("{} warps, {} of them one above the other, do not "
                          "divide {} columns and {} rows in tiles of {} x {}",
                          warps, above, unit.x, unit.y, space.warpTile,
                          space.warpTile)};
  }
  constexpr uint64_t mostStatic = 48 * 1024; // of shared memory, unasked
  if (uint64_t shared = space.sharedBytesOf(config);
      (space.stagedBytes != 0 || !space.tiles.empty()) &&
      !space.stagesAreDynamic && shared > mostStatic)
    return {"static shared memory",
            fmt::format("{} bytes of tiles; at most {} without asking the GPU",
                        shared, mostStatic)};
  if (space.registersBesideSums != 0) {
    // Of every GPU that has such a kernel (device/api/DeviceProfile.cpp).
    constexpr uint64_t registers = 65536;
    uint64_t sums = uint64_t(config[P::TileX]) * config[P::TileY],
             needed = sums + space.registersBesideSums,
             all = needed * threads * config[P::MinBlocks];
    if (all > registers)
      return {"registers of a multiprocessor",
              fmt::format("{} sums and {} other registers of each of {} x {} "
                          "threads are {}; at most {}",
                          sums, space.registersBesideSums, config[P::MinBlocks],
                          threads, all, registers)};
  }
  if (uint32_t x = config[P::TileX], y = config[P::TileY];
      space.target == KernelTarget::Host && (x || y)) {
    if (!x || !y)
      return {"tiles of two sizes",
              fmt::format("tile_x = {} and tile_y = {}: both are 0 or neither",
                          x, y)};
    uint64_t row = uint64_t(config[P::BlockX]) * config[P::Items];
    if (row % x != 0 || config[P::BlockY] % y != 0)
      return {"tiles that divide the block",
              fmt::format("a tile of {} x {} does not divide a block of {} x "
                          "{}",
                          x, y, row, config[P::BlockY])};
  }
  return {};
}

} // namespace

Result<void> KernelSpace::check(const KernelConfig &config) const {
  Broken broken = findBroken(*this, config);
  if (!broken.rule)
    return {};
  return fail(ErrorKind::Invalid, broken.reason);
}

uint64_t KernelSpace::productSize() const {
  uint64_t size = 1;
  bool isTooLarge = false;
  auto multiply = [&](uint64_t by) {
    isTooLarge |= __builtin_mul_overflow(size, by, &size);
  };
  for (const KernelChoice &choice : choices)
    multiply(choice.values.size());
  for (const KernelTunable &tunable : tunables)
    multiply(tunable.values.size());
  return isTooLarge ? UINT64_MAX : size;
}

std::vector<KernelConfig>
KernelSpace::legal(uint64_t limit, std::vector<KernelRefusal> *refused) const {
  std::vector<KernelConfig> found;
  std::vector<const std::vector<uint32_t> *> axes;
  for (const KernelChoice &choice : choices)
    axes.push_back(&choice.values);
  for (const KernelTunable &tunable : tunables)
    axes.push_back(&tunable.values);
  std::vector<size_t> at(axes.size());
  KernelConfig config;
  config.numTunables = uint32_t(tunables.size());
  while (true) {
    for (size_t k = 0; k < axes.size(); ++k)
      (k < numKernelParameters ? config.values[k]
                               : config.tunables[k - numKernelParameters]) =
          (*axes[k])[at[k]];
    Broken broken = findBroken(*this, config);
    if (!broken.rule) {
      if (found.size() == limit)
        return found;
      found.push_back(config);
    } else if (refused) {
      auto same = std::find_if(
          refused->begin(), refused->end(),
          [&](const KernelRefusal &each) { return each.rule == broken.rule; });
      if (same == refused->end())
        same = refused->insert(
            same, {broken.rule, 0, config, std::move(broken.reason)});
      ++same->count;
    }
    size_t k = axes.size();
    while (k > 0 && ++at[k - 1] == axes[k - 1]->size())
      at[--k] = 0;
    if (k == 0)
      return found;
  }
}

} // namespace mgpu::planner
