// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983) on relative costs:
// four of five moves go to a nearest neighbour, the others change one parameter
// to any value. Starts anew from a random point when it is frozen.
#include "tuner/strategy/Strategies.h"

#include <cmath>

namespace mgpu::tuner {

namespace {

class Annealing : public SearchStrategy {
public:
  Annealing(const ConfigSpace &space, uint64_t seed)
      : space(space), random(seed), visited(space.size()) {}

  std::optional<ConfigId> propose() override {
    if (visited.isFull())
      return std::nullopt;
    // Moves between known points cost nothing; they may go round in circles.
    for (int moves = 0; current && moves < 1000; ++moves) {
      space.neighbours(*current, random.below(5) != 0, around);
      if (around.empty())
        break;
      ConfigId to = around[random.below(around.size())];
      if (!visited.contains(to)) {
        visited.insert(to);
        return to;
      }
      move(to, visited.cost(to));
    }
    current.reset();
    temperature = firstTemperature;
    auto start = visited.pickOther(random);
    visited.insert(*start);
    return start;
  }

  void report(ConfigId id, std::optional<double> cost) override {
    visited.setCost(id, cost);
    move(id, visited.cost(id));
  }

private:
  static constexpr double firstTemperature = 0.5;
  static constexpr double lastTemperature = 0.001;
  static constexpr double cooling = 0.98;

  void move(ConfigId to, double cost) {
    double here = current ? visited.cost(*current)
                          : std::numeric_limits<double>::infinity();
    bool accepted =
        cost < here ||
        (std::isfinite(cost) &&
         random.uniform() < std::exp((here - cost) / here / temperature));
    if (accepted)
      current = to;
    temperature = std::max(lastTemperature, temperature * cooling);
  }

  const ConfigSpace &space;
  Random random;
  Visited visited;
  std::optional<ConfigId> current;
  double temperature = firstTemperature;
  std::vector<ConfigId> around;
};

} // namespace

std::unique_ptr<SearchStrategy> makeAnnealing(const ConfigSpace &space,
                                              uint64_t seed) {
  return std::make_unique<Annealing>(space, seed);
}

} // namespace mgpu::tuner
