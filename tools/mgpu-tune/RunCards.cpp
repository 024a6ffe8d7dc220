// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// `run` and `replay` on several cards.
#include "tools/mgpu-tune/RunCards.h"

#include "pipeline/OwnKernels.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>

namespace mgpu::tune {

namespace {

class SeveralCards final : public Runner {
public:
  explicit SeveralCards(std::unique_ptr<CardWorkers> cards)
      : cards(std::move(cards)) {}

  std::string description() const override {
    std::string text;
    for (const std::string &each : cards->descriptions())
      text += (text.empty() ? "" : "; ") + each;
    return text;
  }
  std::span<std::byte> hostBuffer(planner::BufferId id) override {
    return cards->hostBuffer(id);
  }
  Result<std::span<std::byte>> makeMemory(planner::BufferId id) override {
    return std::span(made.emplace_back(hostBuffer(id).size()));
  }
  /// The processes share the memory that their graphs know.
  Result<void> bind(planner::BufferId id,
                    std::span<std::byte> memory) override {
    std::copy(memory.begin(), memory.end(), hostBuffer(id).begin());
    return {};
  }
  Result<void> load() override { return cards->load(); }
  Result<std::vector<double>> replay(uint64_t count) override {
    return cards->replay(count);
  }
  Result<void> fetch() override { return cards->fetch(); }
  Result<std::vector<capture::TimedReplay>> replayTimed() override {
    return cards->replayTimed();
  }
  Result<void> close() override { return cards->close(); }

private:
  std::unique_ptr<CardWorkers> cards;
  std::deque<std::vector<std::byte>> made;
};

} // namespace

Result<CardsToOpen> cardsToOpen(const std::vector<int> &cards,
                                const CardOptions &options,
                                const std::string &database,
                                capture::OwnCubins own) {
  CardsToOpen out;
  out.how.deadline = std::chrono::milliseconds(options.deadlineSeconds * 1000);
  for (int card : cards)
    out.how.names.push_back(fmt::format("cuda:{}", card));
  MGPU_TRY_ASSIGN(const device::NcclOptions nccl, parseNccl(options.nccl));
  out.open = [cards, nccl, deadline = out.how.deadline,
              compile = ownCompiler(database, std::move(own))](
                 uint32_t rank, std::function<Result<void>()> watch) {
    return openRank(cards[rank], rank, deadline, nccl, std::move(watch),
                    compile);
  };
  return out;
}

Result<std::unique_ptr<Runner>> openCards(const LoadedProgram &program,
                                          const Prepared &prepared,
                                          const std::vector<int> &cards,
                                          const CardOptions &options) {
  capture::OwnCubins own;
  if (program.bundle) {
    MGPU_TRY_ASSIGN(own, program.bundle->ownCubins());
  }
  MGPU_TRY_ASSIGN(
      CardsToOpen opening,
      cardsToOpen(cards, options, program.from.database, std::move(own)));
  MGPU_TRY_ASSIGN(auto workers,
                  CardWorkers::start(program.dag, prepared.plan,
                                     prepared.kernels, std::move(opening.open),
                                     std::move(opening.how)));
  return std::unique_ptr<Runner>(
      std::make_unique<SeveralCards>(std::move(workers)));
}

} // namespace mgpu::tune
