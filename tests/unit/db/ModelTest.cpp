// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Random operations on the store and on lists in memory that say the same by
// the definition.
#include "db/Maintenance.h"
#include "db/Statement.h"
#include "support/Random.h"
#include "tests/unit/db/TempFolder.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace mgpu::db {
namespace {

struct Model {
  std::map<std::string, std::vector<Trial>> trials; ///< by shape

  bool isQuarantined(const std::string &shape, const std::string &text) const {
    auto at = trials.find(shape);
    return at != trials.end() &&
           std::any_of(at->second.begin(), at->second.end(),
                       [&](const Trial &each) {
                         return each.configuration == text &&
                                each.status != TrialStatus::Ok;
                       });
  }

  /// By the words of TuningStore::record: first what counts of each
  /// configuration, then the lowest.
  std::optional<Trial> best(const std::string &shape) const {
    auto at = trials.find(shape);
    if (at == trials.end())
      return std::nullopt;
    std::set<std::string> names;
    for (const Trial &each : at->second)
      if (!isQuarantined(shape, each.configuration))
        names.insert(each.configuration);
    std::optional<Trial> best;
    for (const std::string &name : names) {
      uint64_t samples = 0;
      for (const Trial &each : at->second)
        if (each.configuration == name)
          samples = std::max(samples, each.samples);
      std::optional<Trial> counts;
      for (const Trial &each : at->second)
        if (each.configuration == name && each.samples == samples &&
            (!counts || each.medianUs < counts->medianUs))
          counts = each;
      if (!best || counts->medianUs < best->medianUs)
        best = counts;
    }
    return best;
  }
};

/// All medians differ, so that there is one winner.
Trial randomTrial(Random &random, uint64_t number) {
  std::string configuration = "k=" + std::to_string(random.below(12));
  // One draw after the other: compilers evaluate arguments in any order.
  bool failed = random.below(25) == 0;
  uint64_t status = 1 + random.below(5), samples = 1 + random.below(4);
  double medianUs = double(1 + random.below(1000)) + double(number) / 65536;
  Trial trial = failed ? failedTrial(configuration, TrialStatus(status))
                       : okTrial(configuration, medianUs, samples);
  trial.provenance.timeMs = int64_t(1 + number);
  if (random.below(4) == 0)
    trial.provenance.host = "node" + std::to_string(random.below(3));
  return trial;
}

std::string exported(TuningStore &store) {
  std::string text;
  auto done = exportText(store, {}, [&](std::string_view line) {
    text += line;
    return Result<void>();
  });
  EXPECT_TRUE(done) << done.error().message;
  return text;
}

TEST(Model, TheStoreDoesWhatListsDo) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    TempFolder folder;
    Random random(seed);
    Model model;
    auto open = [&](const char *name) {
      auto store = TuningStore::open(folder / name);
      EXPECT_TRUE(store) << store.error().message;
      // What a power cut takes is not what is tested here.
      EXPECT_TRUE(store->database().execute("PRAGMA synchronous=OFF"));
      return std::move(*store);
    };
    std::optional<TuningStore> store(open("a.db"));
    for (uint64_t step = 0; step < 400; ++step) {
      std::string shape = "n=" + std::to_string(random.below(3));
      TuningProblem problem = problemOf(shape);
      uint64_t kind = random.below(20);
      if (kind == 0) {
        store.reset();
        store.emplace(open("a.db"));
      } else if (kind == 1) {
        std::vector<Trial> many;
        for (uint64_t k = random.below(40); k > 0; --k)
          many.push_back(randomTrial(random, 1000 * step + k));
        ASSERT_TRUE(store->record(problem, many));
        auto &list = model.trials[shape];
        list.insert(list.end(), many.begin(), many.end());
      } else if (kind == 2 && !model.trials[shape].empty()) {
        auto &list = model.trials[shape];
        auto some = std::span(list).first(1 + random.below(list.size()));
        EXPECT_EQ(*store->recordMissing(problem, some), 0u);
      } else {
        Trial trial = randomTrial(random, 1000 * step);
        auto done = store->record(problem, trial);
        ASSERT_TRUE(done) << done.error().message;
        model.trials[shape].push_back(trial);
      }
      auto best = store->best(problem);
      ASSERT_TRUE(best) << best.error().message;
      ASSERT_EQ(*best, model.best(shape)) << "step " << step;
      std::string text = "k=" + std::to_string(random.below(12));
      ASSERT_EQ(*store->isQuarantined(problem, text),
                model.isQuarantined(shape, text));
    }
    for (const auto &[shape, trials] : model.trials) {
      EXPECT_EQ(store->trials(problemOf(shape))->trials, trials);
    }
    EXPECT_TRUE(verify(folder / "a.db")->isSound());

    // By text and by merging the same comes out.
    std::string text = exported(*store);
    for (const char *name : {"text.db", "merge.db"}) {
      SCOPED_TRACE(name);
      TuningStore copy = open(name);
      auto done = name[0] == 't' ? recordAll(copy, *parseText(text, "text"))
                                 : merge(copy, folder / "a.db");
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(exported(copy), text);
      for (const auto &[shape, trials] : model.trials)
        EXPECT_EQ(*copy.best(problemOf(shape)), model.best(shape));
      EXPECT_TRUE(verify(folder / name)->isSound());
    }

    // Pruning takes what was last tried long ago, but no winner and failure.
    PruneOptions options;
    options.beforeMs = 370'000; // of 400'000
    auto pruned = prune(*store, options);
    ASSERT_TRUE(pruned) << pruned.error().message;
    uint64_t gone = 0;
    for (auto &[shape, trials] : model.trials) {
      auto winner = model.best(shape);
      Model before = model;
      auto isNew = [&](const std::string &configuration) {
        return std::any_of(before.trials[shape].begin(),
                           before.trials[shape].end(), [&](const Trial &each) {
                             return each.configuration == configuration &&
                                    each.provenance.timeMs >= *options.beforeMs;
                           });
      };
      gone += std::erase_if(trials, [&](const Trial &each) {
        return !isNew(each.configuration) &&
               !(winner && each.configuration == winner->configuration) &&
               !before.isQuarantined(shape, each.configuration);
      });
      EXPECT_EQ(store->trials(problemOf(shape))->trials, trials);
      EXPECT_EQ(*store->best(problemOf(shape)), winner);
    }
    EXPECT_EQ(pruned->trials, gone);
    EXPECT_TRUE(verify(folder / "a.db")->isSound());
  }
}

} // namespace
} // namespace mgpu::db
