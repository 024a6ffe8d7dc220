// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaConfig.h"
#include "kernels/compile/CudaText.h"
#include "planner/dag/KernelWork.h"

#include <map>

namespace mgpu::kernels {

using planner::LaunchWidth, planner::LaunchWork, planner::TileForm;
using P = KernelParameter;

namespace {

/// The value of a tunable, 0 where the space has none of that name.
uint32_t tunableOf(const KernelSpace &space, const KernelConfig &config,
                   std::string_view name) {
  for (size_t k = 0; k < space.tunables().size(); ++k)
    if (space.tunables()[k].name == name)
      return config.tunables[k];
  return 0;
}

LaunchWidth formOf(const KernelSpace &space, const KernelConfig &config) {
  LaunchWidth form;
  form.vector = std::max(config[P::Vector], 1u);
  form.unroll = config[P::Unroll];
  form.items = config[P::Items];
  form.isStaged = tunableOf(space, config, "MGPU_STAGE") != 0;
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
  form.tiles = std::max(tunableOf(space, config, "MGPU_TILES"), 1u);
  form.columns = space.covered(config).x;
  form.rows = space.covered(config).y / form.tiles;
  form.depth = tunableOf(space, config, "MGPU_DEPTH");
  form.stages = tunableOf(space, config, "MGPU_STAGES");
  form.warpsY = std::max(tunableOf(space, config, "MGPU_WARPS_Y"), 1u);
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
