// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "capture/ranks/RankSteps.h"

#include "support/Clock.h"

#include <algorithm>
#include <fmt/format.h>

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

} // namespace mgpu::capture
