// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_BLOCKTEAM_H
#define MGPU_DEVICE_HOST_BLOCKTEAM_H

#include "kernels/abi/HostKernelAbi.h"
#include "support/Result.h"

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace mgpu::device {

/// Runs a launch whose blocks may wait for each other: each has a thread of its
/// own, which sleeps between replays.
class BlockTeam {
public:
  static constexpr uint64_t mostBlocks = 256;

  /// `launch` has at most mostBlocks blocks.
  static Result<std::unique_ptr<BlockTeam>>
  create(kernels::HostKernelEntry entry, std::vector<uint64_t> arguments,
         const kernels::HostLaunch &launch);
  BlockTeam(const BlockTeam &) = delete;
  BlockTeam &operator=(const BlockTeam &) = delete;
  ~BlockTeam();

  /// Returns once all blocks have ended.
  void run();

private:
  BlockTeam(kernels::HostKernelEntry entry, std::vector<uint64_t> arguments,
            const kernels::HostLaunch &launch)
      : entry(entry), arguments(std::move(arguments)), launch(launch) {}
  void work(uint64_t block);

  kernels::HostKernelEntry entry;
  std::vector<uint64_t> arguments;
  kernels::HostLaunch launch;
  std::atomic<uint32_t> round{0}, left{0};
  std::atomic<bool> stops{false};
  std::vector<std::thread> threads;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_BLOCKTEAM_H
