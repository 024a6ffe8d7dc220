// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaConfig.h"

#include "kernels/abi/MatrixProduct.h"
#include "kernels/space/Occupancy.h"

#include <numeric>

namespace mgpu::kernels {

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

std::optional<uint32_t> libraryPlace(const KernelSpace &space,
                                     const KernelConfig &config) {
  for (size_t k = 0; k < space.tunables().size(); ++k)
    if (space.tunables()[k].name == libraryName)
      return config.tunables[k];
  return std::nullopt;
}

} // namespace mgpu::kernels
