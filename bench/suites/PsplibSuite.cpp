// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bench/suites/ScheduleSuite.h"
#include "planner/schedule/bound/MakespanBound.h"
#include "planner/schedule/exact/Patterson.h"
#include "planner/schedule/exact/WholeProblem.h"
#include "planner/schedule/search/OverlapSearch.h"
#include "support/FileIO.h"
#include "support/Parallel.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace mgpu::bench {

using namespace planner::exact;

namespace {
struct Instance {
  std::string name, path;
  Time best = 0;
  Solution solution = {};
  double seconds = 0;

  double deviation() const {
    return best == 0 ? 0 : 100.0 * (solution.makespan - best) / best;
  }
};
} // namespace

static constexpr uint64_t mostText = uint64_t(256) << 20;

/// The instances of the list, in its order, with their files.
static Result<std::vector<Instance>>
findInstances(const PsplibOptions &options) {
  MGPU_TRY_ASSIGN(std::string text, readText(options.bestFile, mostText));
  MGPU_TRY_ASSIGN(SolutionList list, parseSolutionList(text, options.bestFile));
  std::map<std::pair<uint32_t, uint32_t>, std::string> files;
  std::error_code error;
  for (const auto &entry :
       std::filesystem::directory_iterator(options.directory, error)) {
    // SET_P_I.rcp
    std::string stem = entry.path().stem().string();
    size_t second = stem.rfind('_');
    size_t first = second == 0 || second == std::string::npos
                       ? std::string::npos
                       : stem.rfind('_', second - 1);
    if (entry.path().extension() != ".rcp" || first == std::string::npos)
      continue;
    std::pair<uint32_t, uint32_t> key;
    auto number = [](std::string_view digits, uint32_t &value) {
      auto [end, bad] =
          std::from_chars(digits.data(), digits.data() + digits.size(), value);
      return bad == std::errc() && end == digits.data() + digits.size();
    };
    std::string_view view = stem;
    if (!number(view.substr(first + 1, second - first - 1), key.first) ||
        !number(view.substr(second + 1), key.second))
      continue;
    if (!files.try_emplace(key, entry.path().string()).second)
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: two files are instance {} {}; give a "
                              "directory of one set",
                              options.directory, key.first, key.second));
  }
  if (error)
    return fail(ErrorKind::Invalid,
                fmt::format("{}: cannot be listed: {}", options.directory,
                            error.message()));
  std::vector<Instance> instances;
  uint32_t number = 0;
  for (auto [key, best] : list) {
    if (number++ % options.every != 0)
      continue;
    auto it = files.find(key);
    if (it == files.end())
      return fail(ErrorKind::Invalid,
                  fmt::format("{}: no file *_{}_{}.rcp, which {} lists",
                              options.directory, key.first, key.second,
                              options.bestFile));
    instances.push_back(
        {std::filesystem::path(it->second).stem().string(), it->second, best});
  }
  return instances;
}

/// By the portfolio that plans are made by.
static Result<void> solveOne(Instance &instance, const CommonOptions &common) {
  MGPU_TRY_ASSIGN(std::string text, readText(instance.path, mostText));
  Budget budget(common.seconds, UINT64_MAX, common.clock);
  MGPU_TRY_ASSIGN(planner::exact::Problem whole,
                  parsePatterson(text, instance.path));
  MGPU_TRY_ASSIGN(const planner::Problem problem, planner::problemOf(whole));
  planner::Schedule best;
  planner::search::OverlapSearch search(problem, common.seed,
                                        [&](const planner::Schedule &schedule) {
                                          best = schedule;
                                          return 0.0;
                                        });
  search.first(budget);
  const planner::Certificate bound = planner::makespanBound(problem);
  search.improve(bound, budget);
  instance.seconds = budget.elapsed();
  Solution &solution = instance.solution;
  solution.starts.resize(whole.size());
  for (uint32_t k = 0; k < whole.size(); ++k)
    solution.starts[whole.topological()[k]] = Time(std::lround(best.starts[k]));
  solution.makespan = Time(std::lround(best.makespan));
  solution.lowerBound = Time(std::lround(
      std::max(std::ceil(bound.boundUs - 1e-6), search.provenUs())));
  solution.nodes = budget.spentNodes();
  Result<void> checked = whole.check(solution.starts);
  if (!checked || whole.makespan(solution.starts) != solution.makespan)
    return fail(ErrorKind::Internal,
                fmt::format("{}: the schedule is wrong: {}", instance.path,
                            checked ? "makespan" : checked.error().message));
  return {};
}

static void print(const std::vector<Instance> &instances,
                  const CommonOptions &common) {
  double sum = 0;
  uint32_t atBest = 0, proven = 0;
  for (const Instance &instance : instances) {
    sum += instance.deviation();
    atBest += instance.solution.makespan <= instance.best;
    proven += instance.solution.proven();
  }
  double count = double(std::max<size_t>(instances.size(), 1));
  if (common.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const Instance &instance : instances)
      rows.push_back({{"name", instance.name},
                      {"makespan", instance.solution.makespan},
                      {"best", instance.best},
                      {"deviation", instance.deviation()},
                      {"lower_bound", instance.solution.lowerBound},
                      {"proven", instance.solution.proven()},
                      {"seconds", instance.seconds},
                      {"nodes", instance.solution.nodes}});
    nlohmann::json out{
        {"instances", std::move(rows)},
        {"average_deviation", sum / count},
        {"share_at_best", atBest / count},
        {"count", instances.size()},
        {"at_best", atBest},
        {"proven", proven},
        {"seconds", common.seconds},
        {"seed", common.seed},
        {"clock", common.clock == ClockKind::Wall ? "wall" : "cpu"}};
    fmt::print("{}\n", out.dump(1));
    return;
  }
  for (const Instance &instance : instances)
    fmt::print("{:12} makespan {:5}  best {:5}  deviation {:6.2f} %  bound "
               "{:5}{}\n",
               instance.name, instance.solution.makespan, instance.best,
               instance.deviation(), instance.solution.lowerBound,
               instance.solution.proven() ? "  proven" : "");
  fmt::print("{} instances: average deviation {:.4f} %, {} at best known, {} "
             "proven optimal\n",
             instances.size(), sum / count, atBest, proven);
}

Result<int> runPsplib(const PsplibOptions &options,
                      const CommonOptions &common) {
  MGPU_TRY_ASSIGN(std::vector<Instance> instances, findInstances(options));
  std::vector<Result<void>> results(instances.size());
  parallelFor(instances.size(), options.threads,
              [&](size_t i) { results[i] = solveOne(instances[i], common); });
  for (Result<void> &result : results)
    MGPU_TRY(result);
  print(instances, common);
  return 0;
}

} // namespace mgpu::bench
