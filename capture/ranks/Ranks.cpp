// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Ranks.h"

#include "capture/graph/Communication.h"
#include "support/Clock.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <optional>

namespace mgpu::capture {

std::chrono::milliseconds RankLimits::patience() const {
  if (deadline.count() == 0)
    return deadline;
  return std::max<std::chrono::milliseconds>(deadline, std::chrono::minutes(1));
}

std::chrono::milliseconds RankLimits::meeting() const {
  return deadline.count() == 0 ? deadline : deadline + grace;
}

Result<void> RankSteps::checkAlive() const {
  if (lost.empty())
    return {};
  return fail(ErrorKind::Invalid,
              fmt::format("the GPUs were lost before ({}): start the program "
                          "again",
                          lost));
}

tl::unexpected<Error> RankSteps::lose(const char *what) {
  // First those that died, then those that failed by themselves, then those
  // that gave up because of it.
  auto weight = [](const RankAnswer &answer) {
    if (answer.isDead)
      return 0;
    return answer.said.error().cause == ErrorCause::OtherRank ? 2 : 1;
  };
  std::vector<std::pair<int, size_t>> order;
  for (const RankAnswer &answer : answers)
    if (!answer.said)
      order.push_back({weight(answer), answer.rank});
  std::sort(order.begin(), order.end());
  std::string text = fmt::format("{} on several GPUs failed", what);
  for (auto [how, rank] : order)
    text += fmt::format(
        "; rank {}{} {}", limits.process.value_or(uint32_t(rank)),
        rank < names.size() ? fmt::format(" ({})", names[rank]) : "",
        answers[rank].said.error().message);
  lost = text;
  return fail(answers[order.front().second].said.error().kind, std::move(text));
}

Result<void> RankSteps::gather(const char *what,
                               std::chrono::milliseconds patience,
                               SharedControl &control, RankCrew &crew) {
  std::fill(answers.begin(), answers.end(), RankAnswer());
  std::fill(isWaiting.begin(), isWaiting.end(), true);
  size_t left = answers.size();
  std::optional<Clock::time_point> failedAt;
  auto take = [&](RankAnswer answer) {
    isWaiting[answer.rank] = false;
    --left;
    if (!answer.said) {
      if (!failedAt)
        failedAt = Clock::now();
      control.abort();
    }
    answers[answer.rank] = std::move(answer);
  };
  uint64_t signs = control.signs();
  Clock::time_point signAt = Clock::now();
  while (left > 0) {
    if (std::optional<RankAnswer> answer = crew.next(0.05)) {
      take(std::move(*answer));
      continue;
    }
    if (uint64_t now = control.signs(); now != signs) {
      signs = now;
      signAt = Clock::now();
    }
    // Every rank watches its own waits: one that gives no sign of life for so
    // long after its deadline is stuck in a call.
    const auto limit = patience + 2 * limits.grace;
    bool isStuck = patience.count() > 0 && Clock::now() - signAt > limit;
    bool isOver = failedAt && Clock::now() - *failedAt > limits.grace;
    if (!isStuck && !isOver)
      continue;
    for (size_t rank = 0; rank < answers.size(); ++rank)
      if (isWaiting[rank])
        take({rank,
              fail(ErrorKind::Absent,
                   fmt::format("gave no answer and {}: a call of CUDA or NCCL "
                               "does not return",
                               crew.giveUp(rank))),
              true});
  }
  if (failedAt)
    return lose(what);
  return {};
}

Result<std::unique_ptr<Ranks>> Ranks::start(planner::Dag dag,
                                            planner::Plan plan,
                                            std::vector<Bytes> kernels,
                                            RankJob::Open open, Options options,
                                            std::optional<RemotePart> part) {
  MGPU_TRY(part || options.policy == RankPolicy::Processes
               ? checkAcrossGpus(dag)
               : checkAcrossRanks(dag));
  MGPU_TRY_ASSIGN(RankMemory memory,
                  RankMemory::make(dag, part ? part->count : dag.numDevices));
  auto job = std::make_shared<RankJob>(
      RankJob{std::move(dag), std::move(plan), std::move(kernels),
              std::move(memory), std::move(open), options.policy,
              options.meeting(), options.work, options.farewell});
  if (part) {
    options.process = part->others->rank();
    MGPU_TRY_ASSIGN(
        job->remote,
        RemoteMeeting::create(job->dag, std::move(*part), job->memory.host()));
  }
  std::unique_ptr<Ranks> out(new Ranks(job, options));
  MGPU_TRY_ASSIGN(out->crew, options.policy == RankPolicy::Processes
                                 ? startRankProcesses(job)
                                 : startRankThreads(job, options.grace));
  const auto patience = options.patience();
  MGPU_TRY(out->askAll({.step = RankStep::Open}, "opening", patience));
  for (uint32_t rank = 0; rank < job->numRanks(); ++rank) {
    ByteReader said(out->crew->said(rank));
    out->descriptions.push_back(said.text());
    if (rank == 0)
      out->clock = said.text();
  }
  MGPU_TRY(out->askAll({.step = RankStep::Build}, "building", patience));
  return out;
}

Ranks::~Ranks() {
  if (!crew || isClosed || steps.isLost())
    return;
  if (job->remote) // the others may not be there any more
    crew->abandon();
  else if (job->policy == RankPolicy::Threads)
    (void)askAll({.step = RankStep::Close}, "the end", limits.patience());
}

Result<void> Ranks::askAll(const RankRequest &request, const char *what,
                           std::chrono::milliseconds patience) {
  MGPU_TRY(steps.checkAlive());
  crew->post(request);
  Result<void> done =
      steps.gather(what, patience, job->memory.control(), *crew);
  if (!done && job->remote) // who waits for this process learns why
    done.error() = job->remote->part.others->giveUp(std::move(done.error()));
  return done;
}

std::string Ranks::description() const {
  return fmt::format("{}", fmt::join(descriptions, "; "));
}

std::span<std::byte> Ranks::hostBuffer(planner::BufferId id) {
  if (job->remote && !job->remote->mirror.holds(id))
    return {};
  auto own = bound.find(id.value);
  return own == bound.end() ? job->memory.hostBuffer(id) : own->second;
}

Result<std::span<std::byte>> Ranks::memory(planner::BufferId id) {
  if (!isOnDevice(id))
    return hostBuffer(id);
  MGPU_TRY(askAll({.step = RankStep::Memory, .buffer = id},
                  "memory of an argument", limits.patience()));
  const planner::Buffer &buffer = job->dag.buffer(id);
  ByteReader said(crew->said(uint32_t(buffer.device.value)));
  return std::span(
      reinterpret_cast<std::byte *>(uintptr_t(said.take<uint64_t>())),
      size_t(buffer.sizeBytes));
}

Result<void> Ranks::write(planner::BufferId id,
                          std::span<const std::byte> bytes) {
  if (!isOnDevice(id))
    return Runner::write(id, bytes);
  auto *data = const_cast<std::byte *>(bytes.data());
  return askAll(
      {.step = RankStep::Write, .buffer = id, .memory = {data, bytes.size()}},
      "writing an argument", limits.patience());
}

Result<void> Ranks::read(planner::BufferId id, std::span<std::byte> bytes) {
  if (!isOnDevice(id))
    return Runner::read(id, bytes);
  return askAll({.step = RankStep::Read, .buffer = id, .memory = bytes},
                "reading an argument", limits.patience());
}

Result<std::span<std::byte>> Ranks::makeMemory(planner::BufferId id) {
  return std::span(made.emplace_back(hostBuffer(id).size()));
}

/// Copies what processes cannot have in common.
static void copyInto(Runner &to, std::span<const Rebinding> moved) {
  for (const auto &[id, memory] : moved)
    std::copy(memory.begin(), memory.end(), to.hostBuffer(id).begin());
}

Result<void> Ranks::bind(std::span<const Rebinding> moved) {
  if (job->remote || job->policy == RankPolicy::Processes) {
    copyInto(*this, moved);
    return {};
  }
  // A fault that every GPU would have alike is found before any is asked.
  MGPU_TRY(checkRebind(job->dag, moved));
  auto *all = const_cast<Rebinding *>(moved.data());
  Result<void> done =
      askAll({.step = RankStep::Bind,
              .memory = std::as_writable_bytes(std::span(all, moved.size()))},
             "binding memory of the caller's", limits.patience());
  if (!done && done.error().kind == ErrorKind::Usage)
    done.error().kind = ErrorKind::Invalid; // it costs the program
  MGPU_TRY(done);
  for (const auto &[id, memory] : moved)
    bound[id.value] = memory;
  return {};
}

Result<void> Ranks::load() { return askAll(RankStep::Load, "the load"); }

Result<void> Ranks::fetch() { return askAll(RankStep::Fetch, "the fetch"); }

Result<void> Ranks::replay(std::span<double> us) {
  MGPU_TRY(askAll({.step = RankStep::Replay, .count = us.size()}, "the replay",
                  limits.deadline));
  std::fill(us.begin(), us.end(), 0);
  for (uint32_t rank = 0; rank < job->numRanks(); ++rank) {
    ByteReader said(crew->said(rank));
    for (double &longest : us)
      longest = std::max(longest, said.take<double>());
  }
  return {};
}

Result<OutputHashes> Ranks::hashOutputs() {
  if (job->remote)
    return Runner::hashOutputs();
  MGPU_TRY(askAll({.step = RankStep::Hashes}, "hashing what nodes wrote",
                  limits.patience()));
  OutputHashes all{std::vector<uint64_t>(job->dag.nodes.size()),
                   std::vector<uint64_t>(job->dag.buffers.size())};
  OutputHashes each = all;
  for (uint32_t rank = 0; rank < job->numRanks(); ++rank) {
    ByteReader said(crew->said(rank));
    for (std::vector<uint64_t> *hashes : {&each.nodes, &each.buffers})
      for (uint64_t &hash : *hashes)
        hash = said.take<uint64_t>();
    all.add(each);
  }
  return all;
}

Result<std::vector<TimedReplay>> Ranks::replayTimed() {
  MGPU_TRY(askAll(RankStep::Timed, "the timed replay"));
  std::vector<TimedReplay> out;
  for (uint32_t rank = 0; rank < job->numRanks(); ++rank)
    out.push_back(takeTimedReplay(crew->said(rank)));
  return out;
}

Result<std::vector<std::string>> Ranks::work(const char *what) {
  MGPU_TRY(askAll(RankStep::Work, what));
  std::vector<std::string> out;
  for (uint32_t rank = 0; rank < job->numRanks(); ++rank)
    out.push_back(ByteReader(crew->said(rank)).text());
  return out;
}

Result<void> Ranks::close() {
  isClosed = true;
  MGPU_TRY(askAll(RankStep::Close, "the end"));
  for (uint32_t rank = 0; rank < job->numRanks(); ++rank)
    if (std::string complaint = ByteReader(crew->said(rank)).text();
        !complaint.empty())
      return fail(ErrorKind::Internal,
                  fmt::format("rank {}: {}", rank, complaint));
  return {};
}

namespace {

class RemoteRunner final : public Runner {
public:
  RemoteRunner(std::unique_ptr<Runner> here, device::Rendezvous &others)
      : here(std::move(here)), others(others) {}

  std::string description() const override {
    return fmt::format("{}, shared with {} other process{}",
                       here->description(), others.count() - 1,
                       others.count() == 2 ? "" : "es");
  }
  std::span<std::byte> hostBuffer(planner::BufferId id) override {
    return here->hostBuffer(id);
  }
  bool isOnHost() const override { return here->isOnHost(); }
  Result<std::span<std::byte>> makeMemory(planner::BufferId id) override {
    return std::span(made.emplace_back(hostBuffer(id).size()));
  }
  using Runner::bind;
  Result<void> bind(std::span<const Rebinding> moved) override {
    copyInto(*this, moved);
    return {};
  }
  Result<void> checkAlive() const override {
    return lost ? fail(*lost) : here->checkAlive();
  }
  Result<void> load() override { return kept(here->load()); }
  Result<void> replay(std::span<double> us) override {
    return kept(replayTogether(us));
  }
  Result<void> fetch() override { return kept(here->fetch()); }
  Result<std::vector<TimedReplay>> replayTimed() override {
    return kept(timeTogether());
  }
  std::string timedBy() const override { return here->timedBy(); }
  Result<void> close() override {
    MGPU_TRY(here->close());
    return others.meet();
  }

private:
  /// Whatever fails here, the others are not where this process is.
  template <typename T>
  Result<T> kept(Result<T> done) {
    if (!done && !lost)
      lost = done.error();
    return done;
  }
  Result<void> replayTogether(std::span<double> us) {
    MGPU_TRY(others.meet()); // so that none counts how late another comes
    MGPU_TRY(here->replay(us));
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all,
                    others.exchange(std::as_bytes(us)));
    for (const Bytes &each : all) {
      ByteReader reader(each);
      for (double &longest : us)
        longest = std::max(longest, reader.take<double>());
    }
    return {};
  }
  Result<std::vector<TimedReplay>> timeTogether() {
    MGPU_TRY(others.meet());
    MGPU_TRY_ASSIGN(const std::vector<TimedReplay> timed, here->replayTimed());
    Bytes mine;
    for (const TimedReplay &each : timed) {
      Bytes bytes;
      appendTimedReplay(bytes, each);
      append(mine, std::string(reinterpret_cast<const char *>(bytes.data()),
                               bytes.size()));
    }
    MGPU_TRY_ASSIGN(const std::vector<Bytes> all, others.exchange(mine));
    std::vector<TimedReplay> out;
    for (const Bytes &each : all)
      for (ByteReader reader(each); !reader.isEmpty();) {
        const std::string text = reader.text();
        out.push_back(takeTimedReplay(std::as_bytes(std::span(text))));
      }
    return out;
  }

  const std::unique_ptr<Runner> here;
  device::Rendezvous &others;
  std::deque<Bytes> made; ///< by makeMemory()
  std::optional<Error> lost;
};

} // namespace

std::unique_ptr<Runner> runWithOthers(std::unique_ptr<Runner> here,
                                      device::Rendezvous &others) {
  return std::make_unique<RemoteRunner>(std::move(here), others);
}

Result<std::unique_ptr<Runner>>
runGpusWithOthers(planner::Dag dag, planner::Plan plan,
                  std::vector<Bytes> kernels, RemotePart part,
                  RankJob::Open open, Ranks::Options options) {
  device::MessageRendezvous &others = *part.others;
  options.policy = RankPolicy::Threads;
  auto here =
      Ranks::start(std::move(dag), std::move(plan), std::move(kernels),
                   std::move(open), std::move(options), std::move(part));
  if (!here)
    return fail(others.giveUp(std::move(here.error())));
  return runWithOthers(std::move(*here), others);
}

} // namespace mgpu::capture
