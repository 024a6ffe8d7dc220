// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/SpaceText.h"

#include "support/LineText.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace mgpu::kernels {

using planner::KernelChoice;
using planner::KernelParameter;
using planner::KernelSpace;
using planner::KernelTile;
using planner::KernelTunable;

static std::string_view toWord(planner::KernelTarget target) {
  return target == planner::KernelTarget::Cuda ? "cuda" : "host";
}

std::string spaceText(const KernelSpace &space) {
  auto list = [](const std::vector<uint32_t> &values) {
    return fmt::format("{} {}", values.size(), fmt::join(values, " "));
  };
  std::string text = fmt::format(
      "{} block {} {} {} grid {} {} {} {} {} shared {} staged {} {} {} {} "
      "warps {} {} registers {}",
      toWord(space.target), space.block.x, space.block.y, space.block.z,
      space.maxGrid.x, space.maxGrid.y, space.maxGrid.z,
      space.reshapable ? "reshapable" : "fixed", quoteText(space.reason),
      space.sharedBytes, space.stagedBytes, space.stagedTunables,
      space.stagedPadding, space.stagesAreDynamic ? "dynamic" : "static",
      space.warpTile, space.loadingWarps, space.registersBesideSums);
  for (const KernelChoice &choice : space.choices)
    text += fmt::format(" {} {} {}", toString(choice.parameter),
                        list(choice.values), quoteText(choice.reason));
  text += fmt::format(" tunables {}", space.tunables.size());
  for (const KernelTunable &tunable : space.tunables)
    text +=
        fmt::format(" {} {}", quoteText(tunable.name), list(tunable.values));
  if (!space.tiles.empty())
    text += fmt::format(" tiles {}", space.tiles.size());
  for (const KernelTile &tile : space.tiles) {
    text += fmt::format(" {}", tile.elementBytes);
    for (size_t k = 0; k < tile.along.size(); ++k)
      text += fmt::format(" {} {}", uint32_t(tile.along[k]), tile.halo[k]);
  }
  return text + fmt::format(" defaults {} {}",
                            fmt::join(space.defaults.values, " "),
                            list({space.defaults.tunables.begin(),
                                  space.defaults.tunables.begin() +
                                      space.defaults.numTunables}));
}

namespace {

/// Beyond these nothing that the emitter writes goes, and products of them
/// stay countable.
constexpr uint32_t mostValues = 64, mostValue = 1 << 20;

Result<std::vector<uint32_t>> parseList(LineReader &line,
                                        uint32_t most = mostValue) {
  MGPU_TRY_ASSIGN(uint32_t count, line.integer<uint32_t>("count"));
  if (count > mostValues)
    return line.bad("a list of values is too long");
  std::vector<uint32_t> values(count);
  for (uint32_t &value : values) {
    MGPU_TRY_ASSIGN(value, line.integer<uint32_t>("value"));
    if (value > most)
      return line.bad("a value is too large");
  }
  return values;
}

/// One of two words.
Result<bool> parseFlag(LineReader &line, std::string_view yes,
                       std::string_view no) {
  const bool is = line.peek() == yes;
  MGPU_TRY(line.keyword(is ? yes : no));
  return is;
}

Result<void> parseChoices(LineReader &line, KernelSpace &space) {
  for (size_t k = 0; k < planner::numKernelParameters; ++k) {
    KernelChoice choice;
    choice.parameter = KernelParameter(k);
    MGPU_TRY(line.keyword(toString(choice.parameter)));
    MGPU_TRY_ASSIGN(choice.values, parseList(line));
    if (choice.values.empty() ||
        !std::is_sorted(choice.values.begin(), choice.values.end()))
      return line.bad("a parameter's values are none, or not ascending");
    // Of the others a block has so many, or is made of so many.
    const bool mayBeNone = choice.parameter == KernelParameter::Unroll ||
                           (choice.parameter == KernelParameter::Vector &&
                            space.target == planner::KernelTarget::Host) ||
                           choice.parameter == KernelParameter::TileX ||
                           choice.parameter == KernelParameter::TileY;
    if (choice.values.front() == 0 && !mayBeNone)
      return line.bad("a parameter that counts is 0");
    MGPU_TRY_ASSIGN(choice.reason, line.quoted());
    space.choices.push_back(std::move(choice));
  }
  return {};
}

Result<void> parseTunables(LineReader &line, KernelSpace &space) {
  MGPU_TRY(line.keyword("tunables"));
  MGPU_TRY_ASSIGN(uint32_t count, line.integer<uint32_t>("count"));
  if (count > planner::mostKernelTunables)
    return line.bad("a kernel has too many tunables");
  for (uint32_t k = 0; k < count; ++k) {
    KernelTunable tunable;
    MGPU_TRY_ASSIGN(tunable.name, line.quoted());
    MGPU_TRY_ASSIGN(tunable.values, parseList(line, UINT32_MAX));
    if (tunable.values.empty())
      return line.bad("a tunable has no value");
    space.tunables.push_back(std::move(tunable));
  }
  return {};
}

/// What bundles of before there were tiles do not have.
Result<void> parseTiles(LineReader &line, KernelSpace &space) {
  if (line.peek() != "tiles")
    return {};
  MGPU_TRY(line.keyword("tiles"));
  MGPU_TRY_ASSIGN(uint32_t count, line.integer<uint32_t>("count"));
  constexpr uint32_t mostBytes = 16, mostHalo = 1024;
  if (count > mostValues || space.tunables.empty())
    return line.bad("a kernel has too many tiles, or nothing that sets them");
  for (uint32_t k = 0; k < count; ++k) {
    KernelTile tile;
    MGPU_TRY_ASSIGN(tile.elementBytes, line.integer<uint32_t>("byte count"));
    for (size_t axis = 0; axis < tile.along.size(); ++axis) {
      MGPU_TRY_ASSIGN(uint32_t along, line.integer<uint32_t>("axis"));
      MGPU_TRY_ASSIGN(tile.halo[axis], line.integer<uint32_t>("halo"));
      if (along > 1 || tile.halo[axis] > mostHalo)
        return line.bad("a tile's axis is no flag, or its halo too wide");
      tile.along[axis] = along != 0;
    }
    if (tile.elementBytes == 0 || tile.elementBytes > mostBytes)
      return line.bad("a tile's elements are of no size, or too large");
    space.tiles.push_back(tile);
  }
  return {};
}

} // namespace

Result<KernelSpace> parseSpace(std::string_view text) {
  LineReader line("space of a kernel,", text, 1);
  KernelSpace space;
  MGPU_TRY_ASSIGN(const bool isHost, parseFlag(line, "host", "cuda"));
  space.target =
      isHost ? planner::KernelTarget::Host : planner::KernelTarget::Cuda;
  for (auto [word, dims] :
       {std::pair("block", &space.block), {"grid", &space.maxGrid}}) {
    MGPU_TRY(line.keyword(word));
    for (uint32_t *size : {&dims->x, &dims->y, &dims->z}) {
      MGPU_TRY_ASSIGN(*size, line.integer<uint32_t>("dimension"));
    }
  }
  if (space.block.volume() == 0 || space.block.volume() > mostValue)
    return line.bad("a block has no threads, or too many");
  MGPU_TRY_ASSIGN(space.reshapable, parseFlag(line, "reshapable", "fixed"));
  MGPU_TRY_ASSIGN(space.reason, line.quoted());
  MGPU_TRY(line.keyword("shared"));
  MGPU_TRY_ASSIGN(space.sharedBytes, line.integer<uint32_t>("byte count"));
  MGPU_TRY(line.keyword("staged"));
  for (uint32_t *each :
       {&space.stagedBytes, &space.stagedTunables, &space.stagedPadding}) {
    MGPU_TRY_ASSIGN(*each, line.integer<uint32_t>("count"));
  }
  MGPU_TRY_ASSIGN(space.stagesAreDynamic, parseFlag(line, "dynamic", "static"));
  MGPU_TRY(line.keyword("warps"));
  for (uint32_t *each : {&space.warpTile, &space.loadingWarps}) {
    MGPU_TRY_ASSIGN(*each, line.integer<uint32_t>("count"));
  }
  MGPU_TRY(line.keyword("registers"));
  MGPU_TRY_ASSIGN(space.registersBesideSums, line.integer<uint32_t>("count"));
  MGPU_TRY(parseChoices(line, space));
  MGPU_TRY(parseTunables(line, space));
  MGPU_TRY(parseTiles(line, space));
  if (space.stagedBytes > 0 && space.stagedTunables > space.tunables.size())
    return line.bad("more tunables say what is staged than there are");
  MGPU_TRY(line.keyword("defaults"));
  auto isOneOf = [](const std::vector<uint32_t> &values, uint32_t value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  for (size_t k = 0; k < planner::numKernelParameters; ++k) {
    uint32_t &value = space.defaults.values[k];
    MGPU_TRY_ASSIGN(value, line.integer<uint32_t>("value"));
    if (!isOneOf(space.choices[k].values, value))
      return line.bad("a default is none of its values");
  }
  MGPU_TRY_ASSIGN(std::vector<uint32_t> tunables, parseList(line, UINT32_MAX));
  if (tunables.size() != space.tunables.size())
    return line.bad("the defaults have other tunables");
  for (size_t k = 0; k < tunables.size(); ++k)
    if (!isOneOf(space.tunables[k].values, tunables[k]))
      return line.bad("a default is none of its values");
  space.defaults.numTunables = uint32_t(tunables.size());
  std::copy(tunables.begin(), tunables.end(), space.defaults.tunables.begin());
  MGPU_TRY(line.expectEnd());
  if (Result<void> ok = space.check(space.defaults); !ok)
    return line.bad("its defaults are not legal: " + ok.error().message);
  return space;
}

} // namespace mgpu::kernels
