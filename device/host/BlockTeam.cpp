// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/host/BlockTeam.h"

#include <fmt/format.h>
#include <system_error>

namespace mgpu::device {

Result<std::unique_ptr<BlockTeam>>
BlockTeam::create(kernels::HostKernelEntry entry,
                  std::vector<uint64_t> arguments,
                  const kernels::HostLaunch &launch) {
  std::unique_ptr<BlockTeam> team(
      new BlockTeam(entry, std::move(arguments), launch));
  const uint64_t first = launch.firstBlock, last = launch.lastBlock;
  team->threads.reserve(last - first);
  try {
    for (uint64_t block = first; block < last; ++block)
      team->threads.emplace_back(
          [self = team.get(), block] { self->work(block); });
  } catch (const std::system_error &error) {
    return fail(ErrorKind::Absent,
                fmt::format("its {} blocks wait for each other, and a thread "
                            "for each cannot be made: {}",
                            last - first, error.what()));
  }
  return team;
}

BlockTeam::~BlockTeam() {
  stops.store(true);
  round.fetch_add(1);
  round.notify_all();
  for (std::thread &thread : threads)
    thread.join();
}

void BlockTeam::run() {
  left.store(uint32_t(threads.size()));
  round.fetch_add(1);
  round.notify_all();
  for (uint32_t rest = left.load(); rest != 0; rest = left.load())
    left.wait(rest);
}

void BlockTeam::work(uint64_t block) {
  kernels::HostLaunch own = launch;
  own.firstBlock = block;
  own.lastBlock = block + 1;
  for (uint32_t seen = 0;; ++seen) {
    round.wait(seen);
    if (stops.load())
      return;
    entry(arguments.data(), &own);
    if (left.fetch_sub(1) == 1)
      left.notify_all();
  }
}

} // namespace mgpu::device
