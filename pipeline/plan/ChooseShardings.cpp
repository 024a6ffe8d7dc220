// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/plan/ChooseShardings.h"

#include "pipeline/program/Load.h"
#include "support/Random.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

namespace mgpu::pipeline {

using planner::ShardedArgument, planner::Split;
using Splits = std::map<std::string, Split>;

namespace {

/// Most ways of cutting one argument that are listed.
constexpr size_t mostWays = 4096;

/// All ways to cut `shape` in equal parts, each axis of the grid in one
/// dimension or none.
std::vector<Split> waysToCut(const std::vector<int64_t> &shape,
                             const std::vector<int64_t> &grid) {
  std::vector<Split> ways{Split(shape.size())};
  for (size_t axis = 0; axis < grid.size(); ++axis) {
    const size_t before = ways.size();
    for (size_t k = 0; k < before && ways.size() < mostWays; ++k)
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        int64_t parts = grid[axis];
        for (int64_t other : ways[k][dim])
          parts *= grid[size_t(other)];
        if (grid[axis] == 1 || shape[dim] % parts != 0)
          continue;
        Split way = ways[k];
        way[dim].push_back(int64_t(axis));
        ways.push_back(std::move(way));
      }
  }
  return ways;
}

class Search {
public:
  Search(LoadedProgram &program, uint64_t most, const PlanOf &planOf,
         const std::function<void()> &keep)
      : program(program), most(most), planOf(planOf), keep(keep) {}
  Result<ShardingChoice> run(uint64_t seed);

private:
  Result<void> planGiven();
  Result<bool> tryOut(const Splits &splits);
  Result<void> climb();
  bool isDone() const { return choice.tried >= most; }

  LoadedProgram &program;
  uint64_t most;
  const PlanOf &planOf;
  const std::function<void()> &keep;
  ShardingChoice choice;
  std::optional<LoadedProgram> best;
  Error firstError;
  std::set<Splits> seen;
  std::vector<ShardedArgument> arguments; ///< the largest first
  std::vector<std::vector<Split>> ways;   ///< by argument
};

Result<void> Search::planGiven() {
  LoadedProgram copy = program; // as planOf() may change what it plans
  const Result<double> made = planOf(copy);
  if (!made && made.error().kind != ErrorKind::Invalid)
    return fail(made.error());
  if (!made) {
    firstError = made.error();
    return {};
  }
  choice.givenUs = choice.bestUs = *made;
  choice.text = program.shardings.text;
  best = std::move(copy);
  keep();
  return {};
}

/// Whether these annotations of arguments have the shortest plan so far.
Result<bool> Search::tryOut(const Splits &splits) {
  if (isDone() || !seen.insert(splits).second)
    return false;
  ++choice.tried;
  Result<LoadedProgram> other = loadSplits(program, splits);
  if (!other && other.error().kind == ErrorKind::Internal)
    return fail(other.error());
  Result<double> made =
      other ? planOf(*other) : Result<double>(fail(other.error()));
  if (!made && made.error().kind == ErrorKind::Internal)
    return fail(made.error());
  if (!made) {
    ++choice.noPlan;
    return false;
  }
  if (best && *made >= choice.bestUs)
    return false;
  choice.bestUs = *made;
  choice.splits = splits;
  choice.text = other->shardings.text;
  best = std::move(*other);
  keep();
  return true;
}

/// Argument by argument, until none gains.
Result<void> Search::climb() {
  bool gained = true;
  while (gained && !isDone()) {
    gained = false;
    for (size_t k = 0; k < arguments.size() && !isDone(); ++k)
      for (const Split &way : ways[k]) {
        Splits splits = choice.splits;
        splits[arguments[k].name] = way;
        MGPU_TRY_ASSIGN(const bool isBetter, tryOut(splits));
        gained |= isBetter;
      }
  }
  return {};
}

Result<ShardingChoice> Search::run(uint64_t seed) {
  arguments = program.shardings.arguments;
  std::ranges::sort(arguments, {}, [](const ShardedArgument &argument) {
    const int64_t elements =
        std::accumulate(argument.shape.begin(), argument.shape.end(),
                        int64_t(1), std::multiplies<>());
    return std::pair(-elements, argument.name);
  });
  double all = 1;
  for (const ShardedArgument &argument : arguments) {
    ways.push_back(waysToCut(argument.shape, program.shardings.grid));
    all *= double(ways.back().size());
  }
  MGPU_TRY(planGiven());
  MGPU_TRY(climb());
  Random random(seed);
  // Some of the random ones were seen before.
  for (uint64_t k = 0; k < 4 * most && !isDone() && double(seen.size()) < all;
       ++k) {
    Splits splits;
    for (size_t at = 0; at < arguments.size(); ++at)
      splits[arguments[at].name] = ways[at][random.below(ways[at].size())];
    MGPU_TRY(tryOut(splits));
  }
  if (!best)
    return fail(firstError);
  program = std::move(*best);
  return std::move(choice);
}

} // namespace

std::string toComments(const ShardingChoice &choice) {
  std::string out = fmt::format(
      "// {} other annotations of the arguments planned, {} of them without a "
      "plan\n// as given: {}\n",
      choice.tried, choice.noPlan,
      choice.givenUs ? fmt::format("{:.3f} us", *choice.givenUs) : "no plan");
  if (choice.splits.empty())
    return out + "// none is shorter\n";
  out += fmt::format("// best: {:.3f} us\n", choice.bestUs);
  for (const auto &[name, split] : choice.splits)
    out += fmt::format("//   {} split {}\n", name, split);
  return out;
}

Result<ShardingChoice> chooseShardings(LoadedProgram &program, uint64_t most,
                                       uint64_t seed, const PlanOf &planOf,
                                       const std::function<void()> &keep) {
  if (program.shardings.grid.empty() || program.shardings.arguments.empty())
    return fail(ErrorKind::Usage,
                "--shardings: it is for programs that have one shard.grid, or "
                "one sdy.mesh, and tensors as arguments");
  return Search(program, most, planOf, keep).run(seed);
}

} // namespace mgpu::pipeline
