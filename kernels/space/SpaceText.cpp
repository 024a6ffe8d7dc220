// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/space/SpaceText.h"

#include "support/JsonFields.h"

#include <algorithm>

namespace mgpu::planner {

static void fields(JsonFields &f, KernelChoice &choice) {
  f("values", choice.values);
  f.require(!choice.values.empty(), "values");
  f("reason", choice.reason);
}

static void fields(JsonFields &f, KernelTile &tile) {
  f("element_bytes", tile.elementBytes);
  f("along", tile.along);
  f("halo", tile.halo);
}

static void fields(JsonFields &f, KernelConfig &config) {
  f("values", config.values);
  std::vector<uint32_t> tunables(
      config.tunables.begin(),
      config.tunables.begin() +
          std::min<size_t>(config.numTunables, mostKernelTunables));
  f("tunables", tunables);
  const bool fits = tunables.size() <= mostKernelTunables;
  f.require(fits, "tunables");
  if (!f.reads() || !fits)
    return;
  config.numTunables = uint32_t(tunables.size());
  std::copy(tunables.begin(), tunables.end(), config.tunables.begin());
}

void fields(JsonFields &f, KernelSpace &space) {
  std::string target = space.target == KernelTarget::Cuda ? "cuda" : "host";
  f("target", target);
  f.require(target == "cuda" || target == "host", "target");
  if (f.reads()) {
    space.target = target == "cuda" ? KernelTarget::Cuda : KernelTarget::Host;
    for (size_t k = 0; k < numKernelParameters; ++k)
      space.choices.push_back({KernelParameter(k), {}, ""});
  }
  f("block", space.block);
  f("max_grid", space.maxGrid);
  f("reshapable", space.reshapable);
  f("reason", space.reason);
  f("shared_bytes", space.sharedBytes);
  f("staged_bytes", space.stagedBytes);
  f("staged_tunables", space.stagedTunables);
  f("staged_padding", space.stagedPadding);
  f("stages_are_dynamic", space.stagesAreDynamic);
  f("warp_tile", space.warpTile);
  f("loading_warps", space.loadingWarps);
  f("registers_beside_sums", space.registersBesideSums);
  for (KernelChoice &choice : space.choices)
    f(toString(choice.parameter).data(), choice);
  f("tunables", space.tunables);
  f.require(space.tunables.size() <= mostKernelTunables, "tunables");
  f("tiles", space.tiles);
  f.require(space.tiles.empty() || !space.tunables.empty(), "tiles");
  f("defaults", space.defaults);
}

} // namespace mgpu::planner

namespace mgpu::kernels {

using planner::KernelChoice;
using planner::KernelParameter;
using planner::KernelSpace;
using planner::KernelTile;
using planner::KernelTunable;

std::string spaceText(const KernelSpace &space) {
  return JsonFields::text(space);
}

Result<KernelSpace> parseSpace(std::string_view text) {
  MGPU_TRY_ASSIGN(KernelSpace space,
                  JsonFields::read<KernelSpace>("the space of a kernel", text));
  MGPU_TRY(checkSpace(space));
  return space;
}

/// Beyond these nothing that the emitter writes goes.
static constexpr uint32_t mostValues = 64, mostValue = 1 << 20,
                          mostTileBytes = 16, mostHalo = 1024;

/// What is wrong, or null.
static const char *faultOf(const KernelSpace &space,
                           const KernelChoice &choice) {
  const auto &values = choice.values;
  if (values.size() > mostValues)
    return "a list of values is too long";
  if (!std::is_sorted(values.begin(), values.end()))
    return "a parameter's values are not ascending";
  if (values.back() > mostValue)
    return "a value is too large";
  // A block has as many of the others, or is made of so many.
  const bool mayBeNone = choice.parameter == KernelParameter::Unroll ||
                         (choice.parameter == KernelParameter::Vector &&
                          space.target == planner::KernelTarget::Host) ||
                         choice.parameter == KernelParameter::TileX ||
                         choice.parameter == KernelParameter::TileY;
  if (values.front() == 0 && !mayBeNone)
    return "a parameter that counts is 0";
  return nullptr;
}

static bool isSmall(const KernelTile &tile) {
  return tile.elementBytes > 0 && tile.elementBytes <= mostTileBytes &&
         std::all_of(tile.halo.begin(), tile.halo.end(),
                     [](uint32_t halo) { return halo <= mostHalo; });
}

Result<void> checkSpace(const KernelSpace &space) {
  auto bad = [](const std::string &how) {
    return fail(ErrorKind::Invalid, "the space of a kernel: " + how);
  };
  auto isOneOf = [](const std::vector<uint32_t> &values, uint32_t value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  const Dim3 block = space.block;
  if (block.volume() == 0 ||
      std::max({block.x, block.y, block.z}) > mostValue ||
      block.volume() > mostValue)
    return bad("a block has no threads, or too many");
  for (const KernelChoice &choice : space.choices) {
    if (const char *fault = faultOf(space, choice))
      return bad(fault);
    if (!isOneOf(choice.values, space.defaults[choice.parameter]))
      return bad("a default is none of its values");
  }
  if (space.defaults.numTunables != space.tunables.size())
    return bad("the defaults have other tunables");
  for (size_t k = 0; k < space.tunables.size(); ++k) {
    if (space.tunables[k].values.size() > mostValues)
      return bad("a list of values is too long");
    if (!isOneOf(space.tunables[k].values, space.defaults.tunables[k]))
      return bad("a default is none of its values");
  }
  if (space.tiles.size() > mostValues ||
      !std::all_of(space.tiles.begin(), space.tiles.end(), isSmall))
    return bad("a kernel has too many tiles, or one that is too large");
  if (space.stagedBytes > 0 && space.stagedTunables > space.tunables.size())
    return bad("more tunables say what is staged than there are");
  if (Result<void> ok = space.check(space.defaults); !ok)
    return bad("its defaults are not legal: " + ok.error().message);
  return {};
}

} // namespace mgpu::kernels
