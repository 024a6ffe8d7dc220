// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaConfig.h"

#include "kernels/space/Occupancy.h"

namespace mgpu::kernels {

using P = planner::KernelParameter;

std::vector<std::pair<std::string, std::string>>
macrosOf(const planner::KernelSpace &space,
         const planner::KernelConfig &config) {
  std::vector<std::pair<std::string, std::string>> macros;
  for (size_t k = 0; k < space.tunables.size(); ++k)
    macros.push_back(
        {space.tunables[k].name, std::to_string(config.tunables[k])});
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

Result<void> checkOnDevice(const planner::KernelSpace &space,
                           const planner::KernelConfig &config,
                           const device::DeviceProfile &device) {
  MGPU_TRY(space.check(config));
  auto refused = [&](const std::string &what, uint64_t asked, uint64_t most) {
    return fail(ErrorKind::Invalid, std::to_string(asked) + " " + what + "; " +
                                        std::string(device.name) + " has " +
                                        std::to_string(most));
  };
  constexpr uint32_t firstWithClusters = 90;
  if (config[P::ClusterX] > 1 && device.architecture < firstWithClusters)
    return refused("blocks of a cluster", config[P::ClusterX], 1);
  uint64_t threads = config.block().volume(), blocks = config[P::MinBlocks];
  if (threads > device.maxThreadsPerBlock)
    return refused("threads of a block", threads, device.maxThreadsPerBlock);
  const uint64_t bytes = space.sharedBytesOf(config);
  if (bytes > device.maxSharedBytesPerBlock)
    return refused("bytes of shared memory of a block", bytes,
                   device.maxSharedBytesPerBlock);
  if (blocks > device.maxBlocksPerMultiprocessor)
    return refused("blocks on a multiprocessor", blocks,
                   device.maxBlocksPerMultiprocessor);
  constexpr uint64_t warp = 32; // as occupancyOf
  const uint64_t sharedUnit = sharedUnitOf(device);
  uint64_t resident = (threads + warp - 1) / warp * warp * blocks;
  if (resident > device.maxThreadsPerMultiprocessor)
    return refused("threads on a multiprocessor, those of " +
                       std::to_string(blocks) + " blocks",
                   resident, device.maxThreadsPerMultiprocessor);
  uint64_t shared = bytes + device.reservedSharedBytesPerBlock;
  shared = (shared + sharedUnit - 1) / sharedUnit * sharedUnit * blocks;
  if (shared > device.sharedBytesPerMultiprocessor)
    return refused("bytes of shared memory on a multiprocessor, those of " +
                       std::to_string(blocks) + " blocks",
                   shared, device.sharedBytesPerMultiprocessor);
  return {};
}

} // namespace mgpu::kernels
