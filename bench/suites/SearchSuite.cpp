// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// bench-search: scores search strategies on recorded tuning spaces
// (bench/suites/SearchScore.h says how).
#include "bench/suites/SearchScore.h"

#include "support/Parallel.h"
#include "tuner/strategy/SearchStrategy.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <thread>

using namespace mgpu;
using namespace mgpu::bench;

namespace {

struct Options {
  std::string spaces;
  std::vector<std::string> strategies;
  uint32_t repeats = 100;
  uint64_t seed = 1;
  uint32_t threads = std::max(1u, std::thread::hardware_concurrency());
  bool json = false;
};

struct Space {
  tuner::RecordedSpace recorded;
  SearchYardstick yardstick;
};

Result<std::vector<Space>> readSpaces(const std::string &folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().find(".csv") != std::string::npos)
      files.push_back(entry.path().string());
  if (error)
    return fail(ErrorKind::Usage,
                fmt::format("--spaces {}: {}", folder, error.message()));
  if (files.empty())
    return fail(
        ErrorKind::Usage,
        fmt::format("--spaces {}: no .csv or .csv.gz file in it", folder));
  std::sort(files.begin(), files.end());
  std::vector<Space> spaces;
  for (const std::string &file : files) {
    MGPU_TRY_ASSIGN(auto recorded, tuner::readRecordedSpace(file));
    MGPU_TRY_ASSIGN(auto yardstick, SearchYardstick::make(recorded));
    spaces.push_back({std::move(recorded), std::move(yardstick)});
  }
  return spaces;
}

std::vector<std::vector<SearchRun>> runAll(std::span<const Space> spaces,
                                           const std::string &strategy,
                                           const Options &options) {
  std::vector<std::vector<SearchRun>> runs(spaces.size());
  for (auto &ofSpace : runs)
    ofSpace.resize(options.repeats);
  parallelFor(spaces.size() * options.repeats, options.threads, [&](size_t k) {
    const Space &space = spaces[k / options.repeats];
    auto search = tuner::makeStrategy(strategy, space.recorded.space,
                                      options.seed * 1'000'003 + k);
    runs[k / options.repeats][k % options.repeats] =
        runSearch(space.recorded, space.yardstick, **search);
  });
  return runs;
}

nlohmann::ordered_json scoreOf(const std::string &strategy,
                               std::span<const Space> spaces,
                               const Options &options) {
  std::vector<std::vector<SearchRun>> runs = runAll(spaces, strategy, options);
  std::vector<uint32_t> all(options.repeats);
  std::iota(all.begin(), all.end(), 0);
  constexpr double leastWindow = 20;
  std::vector<const SearchYardstick *> yardsticks;
  std::vector<std::vector<SearchRun>> counted;
  nlohmann::ordered_json scores = nlohmann::ordered_json::object();
  nlohmann::ordered_json apart = nlohmann::ordered_json::object();
  nlohmann::ordered_json windows = nlohmann::ordered_json::object();
  double seconds = 0;
  uint64_t evaluations = 0;
  for (size_t s = 0; s < spaces.size(); ++s) {
    const SearchYardstick &yardstick = spaces[s].yardstick;
    const std::string &name = spaces[s].recorded.name;
    bool counts = yardstick.windowEvaluations() >= leastWindow;
    (counts ? scores : apart)[name] = yardstick.score(meanRanks(runs[s], all));
    windows[name] = yardstick.windowEvaluations();
    for (const SearchRun &run : runs[s]) {
      seconds += run.ownSeconds;
      evaluations += run.evaluations;
    }
    if (counts) {
      yardsticks.push_back(&yardstick);
      counted.push_back(std::move(runs[s]));
    }
  }
  nlohmann::ordered_json result{{"strategy", strategy},
                                {"repeats", options.repeats}};
  if (counted.empty()) {
    result["aggregate"] = result["ci_low"] = result["ci_high"] = nullptr;
  } else {
    Interval interval = aggregateScore(yardsticks, counted, options.seed);
    result["aggregate"] = interval.middle;
    result["ci_low"] = interval.low;
    result["ci_high"] = interval.high;
  }
  result["spaces"] = std::move(scores);
  result["spaces_apart"] = std::move(apart);
  result["window_evaluations"] = std::move(windows);
  result["overhead_us_per_evaluation"] =
      1e6 * seconds / double(std::max<uint64_t>(1, evaluations));
  return result;
}

void print(const nlohmann::ordered_json &result) {
  fmt::print("{}: ", result["strategy"].get<std::string>());
  if (result["aggregate"].is_null())
    fmt::print("no space has a window of 20 evaluations");
  else
    fmt::print("{:.3f} (95 %: {:.3f} to {:.3f})",
               result["aggregate"].get<double>(),
               result["ci_low"].get<double>(), result["ci_high"].get<double>());
  fmt::print(", {:.0f} us of its own per evaluation\n",
             result["overhead_us_per_evaluation"].get<double>());
  for (const char *group : {"spaces", "spaces_apart"})
    for (const auto &[name, score] : result[group].items())
      fmt::print("  {:32} {:7.3f}  window {:.0f} evaluations{}\n", name,
                 score.get<double>(),
                 result["window_evaluations"][name].get<double>(),
                 group == std::string_view("spaces") ? "" : ", apart");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Scores search strategies on recorded tuning spaces",
               "bench-search");
  Options options;
  app.add_option("--spaces", options.spaces,
                 "Folder of recorded spaces (.csv, .csv.gz)")
      ->required()
      ->type_name("DIR");
  app.add_option("--strategy", options.strategies,
                 fmt::format("Any of {}, or all; the first is the default",
                             fmt::join(tuner::strategyNames(), ", ")));
  app.add_option("--repeats", options.repeats, "Runs per space")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the first run")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Runs at a time")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--json", options.json, "Print the result as JSON");
  CLI11_PARSE(app, argc, argv);

  auto names = tuner::strategyNames();
  if (options.strategies.empty())
    options.strategies.emplace_back(names.front());
  if (options.strategies == std::vector<std::string>{"all"})
    options.strategies.assign(names.begin(), names.end());
  for (const std::string &name : options.strategies)
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      fmt::print(stderr,
                 "bench-search: error: there is no strategy '{}'; "
                 "choose of {}\n",
                 name, fmt::join(names, ", "));
      return int(ErrorKind::Usage);
    }
  auto spaces = readSpaces(options.spaces);
  if (!spaces) {
    fmt::print(stderr, "bench-search: error: {}\n", spaces.error().message);
    return int(spaces.error().kind);
  }
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (const std::string &name : options.strategies) {
    results.push_back(scoreOf(name, *spaces, options));
    if (!options.json)
      print(results.back());
  }
  if (options.json)
    fmt::print("{}\n",
               (results.size() == 1 ? results.front() : results).dump(2));
  return 0;
}
