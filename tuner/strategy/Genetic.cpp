// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Genetic algorithm: a population of 20, parents by tournaments of two, uniform
// crossover, one parameter in ten mutated; the best two of a generation stay.
#include "tuner/strategy/Strategies.h"

#include <algorithm>

namespace mgpu::tuner {

namespace {

class Genetic : public SearchStrategy {
public:
  Genetic(const ConfigSpace &space, uint64_t seed)
      : space(space), random(seed), visited(space.size()) {}

  std::optional<ConfigId> propose() override {
    std::optional<ConfigId> id;
    if (population.size() < populationSize)
      id = visited.pickOther(random);
    else
      id = child();
    if (id)
      visited.insert(*id);
    return id;
  }

  void report(ConfigId id, std::optional<double> cost) override {
    visited.setCost(id, cost);
    auto &into = population.size() < populationSize ? population : offspring;
    into.push_back(id);
    if (offspring.size() < populationSize - numKept)
      return;
    std::partial_sort(population.begin(), population.begin() + numKept,
                      population.end(), [&](ConfigId a, ConfigId b) {
                        return visited.cost(a) < visited.cost(b);
                      });
    std::copy(offspring.begin(), offspring.end(), population.begin() + numKept);
    offspring.clear();
  }

private:
  static constexpr size_t populationSize = 20, numKept = 2;

  std::span<const uint16_t> parent() {
    ConfigId a = population[random.below(population.size())];
    ConfigId b = population[random.below(population.size())];
    return space.positions(visited.cost(a) <= visited.cost(b) ? a : b);
  }

  /// A legal child that was not visited; a random point where none is found.
  std::optional<ConfigId> child() {
    for (int tries = 0; tries < 200; ++tries) {
      auto father = parent(), mother = parent();
      point.assign(father.begin(), father.end());
      for (uint32_t p = 0; p < point.size(); ++p) {
        if (random.below(2))
          point[p] = mother[p];
        if (random.below(10) == 0)
          point[p] = uint16_t(random.below(space.parameter(p).values.size()));
      }
      auto id = space.find(point);
      if (id && !visited.contains(*id))
        return id;
    }
    return visited.pickOther(random);
  }

  const ConfigSpace &space;
  Random random;
  Visited visited;
  std::vector<ConfigId> population, offspring;
  std::vector<uint16_t> point;
};

} // namespace

std::unique_ptr<SearchStrategy> makeGenetic(const ConfigSpace &space,
                                            uint64_t seed) {
  return std::make_unique<Genetic>(space, seed);
}

} // namespace mgpu::tuner
