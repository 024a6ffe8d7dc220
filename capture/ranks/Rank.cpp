// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Rank.h"

#include "capture/graph/Communication.h"
#include "capture/ranks/Runner.h"
#include "capture/replay/Replayer.h"
#include "support/Clock.h"

#include <algorithm>

namespace mgpu::capture {

using namespace planner;

namespace {

/// The box of a buffer that one process writes or reads in a phase.
struct Touch {
  uint32_t rank = 0;
  BufferId buffer;
  Box box;
  bool operator==(const Touch &) const = default;
};
using Touches = std::array<std::vector<Touch>, allPhases.size()>;

void add(std::vector<Touch> &to, Touch touch) {
  if (touch.box.numElements() > 0 && std::ranges::find(to, touch) == to.end())
    to.push_back(std::move(touch));
}

uint32_t rankOfNode(const DagNode &node, std::span<const uint32_t> rankOf) {
  return node.devices.empty() ? 0 : rankOf[size_t(node.devices[0].value)];
}

} // namespace

Result<HostMirror> HostMirror::create(const Dag &dag,
                                      std::span<const uint32_t> rankOf,
                                      std::span<std::byte> memory,
                                      device::MessageRendezvous &others) {
  HostMirror out(others);
  const uint32_t own = others.rank();
  const std::vector<bool> isWritten = writtenBuffers(dag);
  Touches writes, reads;
  out.isHeld.assign(dag.buffers.size(), own == 0);
  for (const DagNode &node : dag.nodes)
    for (const BufferUse &use : node.uses) {
      const uint32_t rank = rankOfNode(node, rankOf);
      if (!dag.buffer(use.buffer).device.isHost() || rank == 0)
        continue;
      if (!isWritten[use.buffer.value] && rank == own)
        out.isHeld[use.buffer.value] = true;
      if (use.writes)
        add(writes[size_t(node.phase)], {rank, use.buffer, use.box});
      if (use.reads && isWritten[use.buffer.value])
        add(reads[size_t(node.phase)], {rank, use.buffer, use.box});
    }
  const HostLayout layout = hostLayout(dag);
  auto movesOf = [&](const std::vector<Touch> &touches,
                     Moves &moves) -> Result<void> {
    for (const Touch &touch : touches) {
      if (own != 0 && own != touch.rank)
        continue;
      MGPU_TRY(checkBox(touch.box));
      const Box flat = device::packedBox(touch.box);
      Move &move = moves.emplace_back();
      move.rank = touch.rank;
      move.packed.resize(size_t(touch.box.numElements()) *
                         touch.box.elementBytes);
      std::byte *at = memory.data() + layout.offsets[touch.buffer.value];
      MGPU_TRY_ASSIGN(move.pack, device::StridedCopy::create(
                                     move.packed.data(), flat, at, touch.box));
      MGPU_TRY_ASSIGN(
          move.unpack,
          device::StridedCopy::create(at, touch.box, move.packed.data(), flat));
    }
    return {};
  };
  for (size_t phase = 0; phase < allPhases.size(); ++phase) {
    MGPU_TRY(movesOf(writes[phase], out.written[phase]));
    MGPU_TRY(movesOf(reads[phase], out.read[phase]));
  }
  return out;
}

Result<void> HostMirror::carry(Moves &moves, bool isToFirst, const char *what) {
  if (moves.empty())
    return {};
  const bool isFirst = others->rank() == 0;
  std::vector<device::Outgoing> sends;
  std::vector<device::Incoming> recvs;
  for (Move &move : moves) {
    const uint32_t other = isFirst ? move.rank : 0;
    if (isFirst == isToFirst) {
      recvs.push_back({other, move.packed});
      continue;
    }
    move.pack.run();
    sends.push_back({other, move.packed});
  }
  MGPU_TRY(others->transfer(sends, recvs, what));
  if (isFirst == isToFirst)
    for (Move &move : moves)
      move.unpack.run();
  return {};
}

Result<void> HostMirror::meet(std::optional<Phase> next) {
  if (last)
    MGPU_TRY(carry(written[size_t(*last)], true,
                   "what a GPU wrote to the host's memory"));
  last = next;
  MGPU_TRY(others->meet());
  if (next)
    MGPU_TRY(carry(read[size_t(*next)], false,
                   "what a GPU reads of the host's memory"));
  return {};
}

Result<std::shared_ptr<RemoteMeeting>>
RemoteMeeting::create(const planner::Dag &dag, RemotePart part,
                      std::span<std::byte> memory) {
  MGPU_TRY_ASSIGN(HostMirror mirror,
                  HostMirror::create(dag, part.rankOf, memory, *part.others));
  return std::make_shared<RemoteMeeting>(
      RemoteMeeting{std::move(part), std::move(mirror), std::nullopt, 0, {}});
}

/// A rank that fails does not come, so the first one waits for other processes
/// only while none of its own can.
Result<void> RemoteRank::byFirst(const std::function<Result<void>()> &work) {
  MGPU_TRY(here->meet());
  if (here->rank() == 0) {
    shared.fault.reset();
    if (Result<void> done = work(); !done)
      shared.fault = std::move(done.error());
  }
  MGPU_TRY(here->meet());
  return shared.fault ? fail(*shared.fault) : Result<void>();
}

Result<void> RemoteRank::watch() {
  MGPU_TRY(here->watch());
  return shared.part.others->watch();
}

Result<void> RemoteRank::meet() {
  return byFirst([&] { return shared.part.others->meet(); });
}

Result<void> RemoteRank::meetFor(std::optional<planner::Phase> next) {
  return byFirst([&] { return shared.mirror.meet(next); });
}

Result<double> RemoteRank::largest(double mine) {
  MGPU_TRY_ASSIGN(mine, here->largest(mine));
  MGPU_TRY(byFirst([&]() -> Result<void> {
    MGPU_TRY_ASSIGN(shared.largest, shared.part.others->largest(mine));
    return {};
  }));
  return shared.largest;
}

Result<std::vector<Bytes>>
RemoteRank::exchange(std::span<const std::byte> mine) {
  MGPU_TRY_ASSIGN(const std::vector<Bytes> ours, here->exchange(mine));
  MGPU_TRY(byFirst([&]() -> Result<void> {
    Bytes packed;
    for (const Bytes &each : ours)
      append(packed, std::string(reinterpret_cast<const char *>(each.data()),
                                 each.size()));
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all,
                    shared.part.others->exchange(packed));
    std::vector<ByteReader> readers(all.begin(), all.end());
    shared.gathered.clear();
    for (uint32_t process : shared.part.rankOf) {
      const std::string text = readers[process].text();
      append(shared.gathered.emplace_back(), std::as_bytes(std::span(text)));
    }
    return {};
  }));
  return shared.gathered;
}

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
    return replayer->rebind(
        job.dag, job.plan,
        {reinterpret_cast<const Rebinding *>(request.memory.data()),
         request.memory.size() / sizeof(Rebinding)});
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
  case RankStep::Hashes: {
    MGPU_TRY_ASSIGN(const OutputHashes hashes,
                    replayer->hashOutputs(job.dag, job.plan));
    append(said, std::as_bytes(std::span(hashes.nodes)));
    append(said, std::as_bytes(std::span(hashes.buffers)));
    return {};
  }
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
