// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaConfig.h"

#include "kernels/abi/MatrixProduct.h"
#include "kernels/compile/CudaText.h"
#include "kernels/space/Occupancy.h"
#include "planner/dag/KernelWork.h"

#include <map>
#include <numeric>

namespace mgpu::kernels {

using planner::LaunchWidth, planner::LaunchWork, planner::TileForm;
using P = KernelParameter;

std::vector<std::pair<std::string, std::string>>
tunableMacros(const KernelSpace &space, const KernelConfig &config) {
  std::vector<std::pair<std::string, std::string>> macros;
  for (size_t k = 0; k < space.tunables().size(); ++k)
    macros.push_back(
        {space.tunables()[k].name, std::to_string(config.tunables[k])});
  return macros;
}

std::vector<std::pair<std::string, std::string>>
macrosOf(const KernelSpace &space, const KernelConfig &config) {
  auto macros = tunableMacros(space, config);
  for (auto [name, parameter] : {std::pair("MGPU_BLOCK_X", P::BlockX),
                                 {"MGPU_BLOCK_Y", P::BlockY},
                                 {"MGPU_BLOCK_Z", P::BlockZ},
                                 {"MGPU_ITEMS", P::Items},
                                 {"MGPU_VECTOR", P::Vector},
                                 {"MGPU_UNROLL", P::Unroll},
                                 {"MGPU_MIN_BLOCKS", P::MinBlocks},
                                 {"MGPU_TILE_X", P::TileX},
                                 {"MGPU_TILE_Y", P::TileY},
                                 {"MGPU_CLUSTER_X", P::ClusterX}})
    macros.push_back({name, std::to_string(config[parameter])});
  return macros;
}

KernelSpace onDevice(KernelSpace space, const device::DeviceProfile &device) {
  const std::string rule = "limits of " + std::string(device.name);
  auto limit = [&](Formula asked, int64_t most, const std::string &what) {
    space.require(rule, std::move(asked), Relation::AtMost, most,
                  "$left " + what + "; " + std::string(device.name) +
                      " has $right");
    space.constraints.back().bindsDefaults = true;
  };
  constexpr uint32_t firstWithClusters = 90, warp = 32; // as occupancyOf
  if (device.architecture < firstWithClusters)
    limit(P::ClusterX, 1, "blocks of a cluster");
  const Formula threads = Formula(P::BlockX) * P::BlockY * P::BlockZ,
                &blocks = P::MinBlocks, &bytes = space.sharedBytes;
  limit(threads, device.maxThreadsPerBlock, "threads of a block");
  limit(bytes, device.maxSharedBytesPerBlock,
        "bytes of shared memory of a block");
  limit(blocks, device.maxBlocksPerMultiprocessor,
        "blocks on a multiprocessor");
  limit(Formula(threads).roundedUp(warp) * blocks,
        device.maxThreadsPerMultiprocessor,
        "threads on a multiprocessor, those of its blocks together");
  limit((bytes + device.reservedSharedBytesPerBlock)
                .roundedUp(sharedUnitOf(device)) *
            blocks,
        device.sharedBytesPerMultiprocessor,
        "bytes of shared memory on a multiprocessor, those of its blocks "
        "together");
  return space;
}

static constexpr const char *libraryName = "MGPU_LIBRARY";

void addLibraryChoices(KernelSpace &space) {
  if (space.tunables().size() >= planner::mostKernelTunables)
    return;
  std::vector<uint32_t> places(mostProductChoices + 1);
  std::iota(places.begin(), places.end(), 0);
  std::swap(places[0], places[1]);
  const Formula place = Formula::tunable(space.tunables().size());
  for (size_t k = 0; k < space.axes.size(); ++k) {
    if (space.axes[k].values.size() < 2)
      continue;
    const Formula value = k < numKernelParameters
                              ? Formula(KernelParameter(k))
                              : Formula::tunable(k - numKernelParameters);
    space.require("a library's algorithm", place * value, Relation::Equal,
                  place * Formula(space.defaults.at(k)),
                  space.axes[k].name + " is of the kernel's own text, which "
                                       "does not run");
  }
  space.addTunable({libraryName, places});
}

/// The value of a tunable; nothing where the space has none of that name.
static std::optional<uint32_t> tunableOf(const KernelSpace &space,
                                         const KernelConfig &config,
                                         std::string_view name) {
  for (size_t k = 0; k < space.tunables().size(); ++k)
    if (space.tunables()[k].name == name)
      return config.tunables[k];
  return std::nullopt;
}

std::optional<uint32_t> libraryPlace(const KernelSpace &space,
                                     const KernelConfig &config) {
  return tunableOf(space, config, libraryName);
}

namespace {

LaunchWidth formOf(const KernelSpace &space, const KernelConfig &config) {
  LaunchWidth form;
  form.vector = std::max(config[P::Vector], 1u);
  form.unroll = config[P::Unroll];
  form.items = config[P::Items];
  form.isStaged = tunableOf(space, config, "MGPU_STAGE").value_or(0) != 0;
  if (space.reshapable) {
    form.blockX = config[P::BlockX];
    form.blockY = config[P::BlockY];
    form.blockZ = config[P::BlockZ];
  } else {
    form.rows = config[P::BlockY] / std::max(space.block.y, 1u);
  }
  return form;
}

std::optional<TileForm::Kind> kindOf(std::string_view form) {
  if (form == "tiles")
    return TileForm::Kind::Threads;
  if (form == "tensor_cores")
    return TileForm::Kind::Mma;
  if (form == "wgmma")
    return TileForm::Kind::Wgmma;
  return std::nullopt;
}

TileForm tileFormOf(TileForm::Kind kind, const KernelSpace &space,
                    const KernelConfig &config) {
  TileForm form;
  form.kind = kind;
  form.blockX = config[P::BlockX];
  form.blockY = config[P::BlockY];
  form.tileX = config[P::TileX];
  form.tileY = config[P::TileY];
  form.tiles = tunableOf(space, config, "MGPU_TILES").value_or(1);
  form.columns = space.covered(config).x;
  form.rows = space.covered(config).y / form.tiles;
  form.depth = tunableOf(space, config, "MGPU_DEPTH").value_or(0);
  form.stages = tunableOf(space, config, "MGPU_STAGES").value_or(0);
  form.warpsY = tunableOf(space, config, "MGPU_WARPS_Y").value_or(1);
  form.sharedBytes = space.sharedBytesOf(config);
  return form;
}

} // namespace

std::vector<std::optional<LaunchWork>>
launchWorkOf(const planner::KernelSpec &kernel, const CudaText &text,
             std::span<const KernelConfig> configs) {
  std::vector<std::optional<LaunchWork>> works(configs.size());
  if (!kernel.facts || !text.space)
    return works;
  const planner::KernelFacts &facts = *kernel.facts;
  const KernelSpace &space = *text.space;
  const auto kind = kindOf(text.form);
  if (kind && !facts.product)
    return works;
  const double threads =
      double(facts.grid.volume()) * double(facts.block.volume());
  std::map<LaunchWidth, LaunchWork> known;
  for (size_t k = 0; k < configs.size(); ++k) {
    if (libraryPlace(space, configs[k]).value_or(0) > 0)
      continue;
    if (kind) {
      works[k] = planner::workOfTiles(
          *facts.product, tileFormOf(*kind, space, configs[k]), threads);
      continue;
    }
    const LaunchWidth form = formOf(space, configs[k]);
    auto [at, isNew] = known.try_emplace(form);
    if (isNew)
      at->second = planner::workOf(facts, form);
    works[k] = at->second;
  }
  return works;
}

} // namespace mgpu::kernels
