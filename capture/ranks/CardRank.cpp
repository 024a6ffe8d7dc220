// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/CardRank.h"

#include "capture/graph/Cards.h"

namespace mgpu::capture {

CardRank::CardRank(uint32_t rank, const Job &job, const CardMemory &memory)
    : rank(rank), job(job), control(memory.control()),
      hostMemory(memory.host()), members(communicatingGroups(job.dag)) {}

Result<void> CardRank::meet() {
  return control.meet(rank, job.dag.numDevices, job.deadline);
}

Result<double> CardRank::largest(double mine) {
  return control.largest(rank, job.dag.numDevices, mine, job.deadline);
}

Result<std::vector<device::GroupId>> CardRank::open() {
  MGPU_TRY_ASSIGN(driver,
                  job.open(rank, [this] { return control.watch(rank); }));
  // No process may pin the same memory twice.
  const bool isPinned = job.areThreads && rank != 0;
  if (isPinned)
    MGPU_TRY(meet());
  MGPU_TRY(driver->adoptHost(hostMemory, isPinned));
  if (job.areThreads && !isPinned)
    MGPU_TRY(meet());
  std::vector<device::GroupId> ids;
  for (const std::vector<DeviceId> &group : members)
    if (group.front().value == int32_t(rank)) {
      MGPU_TRY_ASSIGN(device::GroupId id, driver->makeGroupId());
      ids.push_back(id);
    }
  return ids;
}

Result<void>
CardRank::build(const std::vector<std::vector<device::GroupId>> &led) {
  std::vector<size_t> taken(led.size());
  std::vector<device::DeviceGroup> groups;
  for (const std::vector<DeviceId> &group : members) {
    const auto first = size_t(group.front().value);
    groups.push_back({group, led[first][taken[first]++]});
  }
  MGPU_TRY(driver->join(groups));
  MGPU_TRY_ASSIGN(theReplayer,
                  Replayer::create(job.dag, job.plan, job.kernels, *driver,
                                   {hostMemory, [this] { return meet(); }}));
  return {};
}

Result<void> CardRank::close() {
  theReplayer.reset();
  if (job.areThreads)
    MGPU_TRY(meet());
  driver.reset();
  return {};
}

void CardRank::abandon(const std::string &reason) {
  if (driver)
    driver->abandon(reason);
}

} // namespace mgpu::capture
