// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Iterated local search: from a point go to the first better one that differs
// in one parameter; at a local optimum, start again from a random point.
#include "tuner/strategy/Strategies.h"

namespace mgpu::tuner {

namespace {

class LocalSearch : public SearchStrategy {
public:
  LocalSearch(const ConfigSpace &space, uint64_t seed)
      : space(space), random(seed), visited(space.size()) {}

  std::optional<ConfigId> propose() override {
    if (visited.isFull())
      return std::nullopt;
    while (!open.empty()) {
      ConfigId to = open.back();
      open.pop_back();
      if (!visited.contains(to)) {
        visited.insert(to);
        return to;
      }
      if (visited.cost(to) < currentCost)
        moveTo(to);
    }
    currentCost = std::numeric_limits<double>::infinity();
    auto start = visited.pickOther(random);
    visited.insert(*start);
    return start;
  }

  void report(ConfigId id, std::optional<double> cost) override {
    visited.setCost(id, cost);
    if (visited.cost(id) < currentCost)
      moveTo(id);
  }

private:
  void moveTo(ConfigId id) {
    currentCost = visited.cost(id);
    space.neighbours(id, /*nearest=*/false, open);
    for (size_t k = open.size(); k > 1; --k)
      std::swap(open[k - 1], open[random.below(k)]);
  }

  const ConfigSpace &space;
  Random random;
  Visited visited;
  double currentCost = std::numeric_limits<double>::infinity();
  std::vector<ConfigId> open; ///< neighbours not looked at, in random order
};

} // namespace

std::unique_ptr<SearchStrategy> makeLocalSearch(const ConfigSpace &space,
                                                uint64_t seed) {
  return std::make_unique<LocalSearch>(space, seed);
}

} // namespace mgpu::tuner
