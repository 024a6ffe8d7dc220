// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Rank.h"

#include "capture/graph/Communication.h"
#include "capture/ranks/Runner.h"
#include "support/Clock.h"

namespace mgpu::capture {

Result<std::vector<device::GroupId>>
makeGroups(const planner::Dag &dag, DeviceId own, device::Driver &driver) {
  std::vector<device::GroupId> led;
  for (const std::vector<DeviceId> &group : communicatingGroups(dag))
    if (group.front() == own) {
      MGPU_TRY_ASSIGN(device::GroupId id, driver.makeGroupId());
      led.push_back(id);
    }
  return led;
}

Result<void> joinGroups(const planner::Dag &dag, std::span<const Bytes> told,
                        device::Driver &driver) {
  std::vector<ByteReader> readers(told.begin(), told.end());
  std::vector<device::DeviceGroup> groups;
  for (const std::vector<DeviceId> &group : communicatingGroups(dag)) {
    ByteReader &reader = readers[size_t(group.front().value)];
    groups.push_back({group, reader.take<device::GroupId>()});
  }
  return driver.join(groups);
}

static std::unique_ptr<Rendezvous> rendezvousOf(uint32_t rank,
                                                const RankJob &job) {
  auto here = job.memory.rendezvous(rank, job.deadline);
  if (!job.remote)
    return here;
  return std::make_unique<RemoteRank>(*job.remote, std::move(here));
}

Rank::Rank(uint32_t rank, const RankJob &job)
    : rank(rank), job(job), rendezvous(rendezvousOf(rank, job)) {}

Result<void> Rank::meet(std::optional<planner::Phase> next) {
  return job.remote ? static_cast<RemoteRank &>(*rendezvous).meetFor(next)
                    : rendezvous->meet();
}

Result<void> Rank::perform(const RankRequest &request, Bytes &said) {
  switch (request.step) {
  case RankStep::Open:
    return open(said);
  case RankStep::Build:
    return build();
  case RankStep::Bind:
    return replayer->rebind(job.dag, job.plan, request.buffer, request.memory);
  case RankStep::Memory: {
    MGPU_TRY_ASSIGN(auto memory, replayer->memory(job.dag, request.buffer));
    append(said, uint64_t(uintptr_t(memory.data())));
    return {};
  }
  case RankStep::Write:
    return replayer->write(job.dag, request.buffer, request.memory);
  case RankStep::Read:
    return replayer->read(job.dag, request.buffer, request.memory);
  case RankStep::Load:
    MGPU_TRY(replayer->complete(job.dag, job.plan));
    return replayer->load();
  case RankStep::Replay:
    return replay(request.count, said);
  case RankStep::Fetch:
    MGPU_TRY(replayer->fetch());
    return job.remote ? meet(std::nullopt) : Result<void>();
  case RankStep::Timed:
    return replayTimed(said);
  case RankStep::Work: {
    MGPU_TRY_ASSIGN(std::string text, job.work(rank, *this));
    append(said, text);
    return {};
  }
  case RankStep::Close:
    break;
  }
  return close(said);
}

Result<void> Rank::open(Bytes &said) {
  MGPU_TRY_ASSIGN(driver,
                  job.open(rank, [this] { return rendezvous->watch(); }));
  // Host memory can be pinned once in a process: the first thread does it.
  const bool areThreads = job.policy == RankPolicy::Threads;
  const bool isPinned = areThreads && rank != 0;
  if (isPinned)
    MGPU_TRY(rendezvous->meet());
  MGPU_TRY(driver->adoptHost(job.memory.host(), isPinned));
  if (areThreads && !isPinned)
    MGPU_TRY(rendezvous->meet());
  MGPU_TRY_ASSIGN(led,
                  makeGroups(job.dag, {int32_t(rendezvous->rank())}, *driver));
  append(said, driver->description());
  append(said, driver->timedBy());
  return {};
}

Result<void> Rank::build() {
  MGPU_TRY_ASSIGN(const std::vector<Bytes> ids,
                  rendezvous->exchange(std::as_bytes(std::span(led))));
  MGPU_TRY(joinGroups(job.dag, ids, *driver));
  MGPU_TRY_ASSIGN(replayer,
                  Replayer::create(job.dag, job.plan, job.kernels, *driver,
                                   {job.memory.host(),
                                    [this](auto next) { return meet(next); },
                                    /*hasOwnMemory=*/job.remote != nullptr},
                                   Arguments::Later));
  return {};
}

Result<void> Rank::replay(uint64_t count, Bytes &said) {
  for (uint64_t k = 0; k < count; ++k) {
    const Clock::time_point start = Clock::now();
    MGPU_TRY(replayer->replay());
    append(said, microsecondsSince(start));
  }
  return {};
}

Result<void> Rank::replayTimed(Bytes &said) {
  MGPU_TRY_ASSIGN(TimedReplay timed, replayer->replayTimed());
  appendTimedReplay(said, timed);
  return {};
}

Result<void> Rank::close(Bytes &said) {
  replayer.reset();
  if (job.policy == RankPolicy::Threads)
    MGPU_TRY(rendezvous->meet());
  driver.reset();
  if (job.farewell && job.policy == RankPolicy::Processes)
    append(said, job.farewell());
  return {};
}

void Rank::abandon(const std::string &reason) {
  if (driver)
    driver->abandon(reason);
}

} // namespace mgpu::capture
