// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_STRATEGY_VISITED_H
#define MGPU_TUNER_STRATEGY_VISITED_H

// The points a search has proposed or been told of, and what came of them.

#include "support/Random.h"
#include "tuner/space/ConfigSpace.h"

#include <limits>

namespace mgpu::tuner {

class Visited {
public:
  explicit Visited(uint32_t size)
      : known(size, false), costs(size, unmeasured) {}

  bool contains(ConfigId id) const { return known[id]; }
  bool isFull() const { return numKnown == known.size(); }
  void insert(ConfigId id) {
    numKnown += !known[id];
    known[id] = true;
  }
  void setCost(ConfigId id, std::optional<double> cost) {
    insert(id);
    costs[id] = cost.value_or(std::numeric_limits<double>::infinity());
  }
  /// Infinite for a failure and for what was not measured.
  double cost(ConfigId id) const { return costs[id]; }

  /// A point not visited, each as likely; none when all are.
  std::optional<ConfigId> pickOther(Random &random) const {
    if (isFull())
      return std::nullopt;
    for (int tries = 0; tries < 64; ++tries)
      if (ConfigId id = ConfigId(random.below(known.size())); !known[id])
        return id;
    // Few are left: count to one of them.
    uint64_t skip = random.below(known.size() - numKnown);
    for (ConfigId id = 0;; ++id)
      if (!known[id] && skip-- == 0)
        return id;
  }

private:
  static constexpr double unmeasured = std::numeric_limits<double>::infinity();
  std::vector<bool> known;
  std::vector<double> costs;
  uint64_t numKnown = 0;
};

} // namespace mgpu::tuner

#endif // MGPU_TUNER_STRATEGY_VISITED_H
