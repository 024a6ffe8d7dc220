// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/Rank.h"
#include "support/ChildProcess.h"

#include <csignal>
#include <deque>

namespace mgpu::capture {

namespace {

constexpr double sendSeconds = 10, answerSeconds = 60;

/// In a rank's process: 0 and what was asked for, or 1 + an ErrorKind, its
/// ErrorCause and a text.
Bytes answer(Rank &rank, std::span<const std::byte> asked) {
  Bytes out;
  append(out, uint8_t(0));
  Result<void> done = rank.perform(ByteReader(asked).take<RankRequest>(), out);
  if (done)
    return out;
  out.clear();
  append(out, uint8_t(1 + uint8_t(done.error().kind)));
  append(out, uint8_t(done.error().cause));
  append(out, done.error().message);
  return out;
}

/// A process for each rank. This process hands out each request, and collects
/// the answers.
class RankProcesses final : public RankCrew {
public:
  explicit RankProcesses(std::shared_ptr<const RankJob> job)
      : job(std::move(job)), answers(this->job->dag.numDevices),
        waiting(answers.size()) {}
  ~RankProcesses() override { job->memory.control().abort(); }

  Result<void> start() {
    for (uint32_t k = 0; k < answers.size(); ++k) {
      // The rank is the child's alone from here on.
      auto rank = std::make_shared<Rank>(k, *job);
      MGPU_TRY_ASSIGN(
          ChildProcess child,
          ChildProcess::start(
              [rank](std::span<const std::byte> asked) -> Outcome<Bytes> {
                return answer(*rank, asked);
              }));
      children.push_back(std::move(child));
    }
    return {};
  }

  void post(const RankRequest &request) override {
    Bytes asked;
    append(asked, request);
    for (size_t rank = 0; rank < children.size(); ++rank) {
      answers[rank].clear();
      waiting[rank] = &children[rank];
      if (auto sent = children[rank].post(asked, sendSeconds); !sent)
        unsent.push_back(died(rank, sent.error()));
    }
  }

  std::optional<RankAnswer> next(double seconds) override {
    if (!unsent.empty()) {
      RankAnswer first = std::move(unsent.front());
      unsent.pop_front();
      return first;
    }
    auto rank = ChildProcess::firstReady(waiting, seconds);
    if (!rank)
      return std::nullopt;
    auto got = children[*rank].receive(answerSeconds);
    if (!got)
      return died(*rank, got.error());
    waiting[*rank] = nullptr;
    answers[*rank] = std::move(*got);
    ByteReader reader(answers[*rank]);
    if (auto code = reader.take<uint8_t>()) {
      auto cause = ErrorCause(reader.take<uint8_t>());
      return RankAnswer{*rank, fail(Error{.kind = ErrorKind(code - 1),
                                          .message = reader.text(),
                                          .cause = cause})};
    }
    return RankAnswer{*rank, {}};
  }

  std::string giveUp(size_t rank) override {
    ::kill(children[rank].process(), SIGKILL);
    waiting[rank] = nullptr;
    return "was ended";
  }

  std::span<const std::byte> said(size_t rank) const override {
    return std::span(answers[rank]).subspan(1);
  }
  pid_t process(size_t rank) const override { return children[rank].process(); }

private:
  RankAnswer died(size_t rank, const Fault &fault) {
    waiting[rank] = nullptr;
    return {rank, fail(ErrorKind::Absent, fault.what), true};
  }

  const std::shared_ptr<const RankJob> job;
  std::vector<ChildProcess> children;
  // The answers of this step, by rank.
  std::vector<Bytes> answers;
  std::vector<ChildProcess *> waiting; ///< null once it has answered
  std::deque<RankAnswer> unsent; ///< answers of ranks that could not be asked
};

} // namespace

Result<std::unique_ptr<RankCrew>>
startRankProcesses(std::shared_ptr<const RankJob> job) {
  auto crew = std::make_unique<RankProcesses>(std::move(job));
  MGPU_TRY(crew->start());
  return std::unique_ptr<RankCrew>(std::move(crew));
}

} // namespace mgpu::capture
