// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Machine.h"

// Special registers (ISA 9.0, section 10), filled when a warp starts.

namespace mgpu::kernels::ptx {

static uint32_t axisOf(const Dim3 &of, uint32_t axis) {
  return axis == 0 ? of.x : axis == 1 ? of.y : of.z;
}

/// The value of a special register that all lanes have alike.
static uint32_t valueOf(const Warp &warp, Special special) {
  using S = Special;
  const LaunchOptions &launch = warp.machine.options;
  const Dim3 &size = launch.cluster, &grid = launch.grid;
  const uint32_t rank = warp.block.rank;
  auto isAxisOf = [&](S first, uint32_t &axis) {
    axis = uint32_t(special) - uint32_t(first);
    return special >= first && axis < 3;
  };
  uint32_t axis = 0;
  if (isAxisOf(S::NtidX, axis))
    return axisOf(launch.block, axis);
  if (isAxisOf(S::CtaidX, axis))
    return axisOf(warp.block.index, axis);
  if (isAxisOf(S::NctaidX, axis))
    return axisOf(grid, axis);
  if (isAxisOf(S::ClusteridX, axis))
    return axisOf(warp.block.cluster.index, axis);
  if (isAxisOf(S::NclusteridX, axis))
    return axisOf(grid, axis) / axisOf(size, axis);
  if (isAxisOf(S::ClusterCtaidX, axis))
    return axisOf(
        {rank % size.x, rank / size.x % size.y, rank / size.x / size.y}, axis);
  if (isAxisOf(S::ClusterNctaidX, axis))
    return axisOf(size, axis);
  switch (special) {
  case S::WarpId:
    return warp.index;
  case S::NwarpId:
    return uint32_t(warp.block.warps.size());
  case S::NsmId:
    return 1;
  case S::ClusterCtarank:
    return rank;
  case S::ClusterNctarank:
    return uint32_t(size.volume());
  case S::ExplicitCluster:
    return size.volume() > 1 ? allLanes : 0;
  case S::DynamicShared:
    return launch.sharedBytes;
  case S::TotalShared:
    return launch.sharedBytes + warp.machine.program.sharedBytes;
  default:
    return 0;
  }
}

void Warp::start() {
  pc = 0;
  active = present;
  exited = 0;
  limit = UINT32_MAX;
  others.clear();
  copies.clear();
  stores.clear();
  products.clear();
  productGroups = productCount = 0;
  hasProductFence = false;
  productRegisters.assign(machine.program.productRegisters.size(), 0);
  groups.fill(0);
  bulkGroups.fill(0);
  hasAwaited = false;
  using S = Special;
  const Dim3 &size = machine.options.block;
  for (const auto &[special, place] : machine.program.specials) {
    auto *cell = cells<uint32_t>(place);
    const bool isWide = special == S::GridId || special == S::Clock64 ||
                        special == S::GlobalTimer;
    const uint32_t value = valueOf(*this, special);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      const uint32_t thread = index * lanes + lane;
      const uint32_t bit = 1u << lane;
      uint32_t own = value;
      if (special <= S::TidZ)
        own = special == S::TidX   ? thread % size.x
              : special == S::TidY ? thread / size.x % size.y
                                   : thread / size.x / size.y;
      else if (special == S::LaneId)
        own = lane;
      else if (special >= S::MaskEq && special <= S::MaskGe)
        own = special == S::MaskEq   ? bit
              : special == S::MaskLt ? bit - 1
              : special == S::MaskLe ? bit | (bit - 1)
              : special == S::MaskGt ? ~(bit | (bit - 1))
                                     : ~(bit - 1);
      if (isWide)
        cells<uint64_t>(place)[lane] = own;
      else
        cell[lane] = own;
    }
  }
}

} // namespace mgpu::kernels::ptx
