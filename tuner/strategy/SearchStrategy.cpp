// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/strategy/SearchStrategy.h"

#include "tuner/strategy/Surrogate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace mgpu::tuner {

namespace {

/// Proposes points of a space, no point twice.
class SpaceSearch : public SearchStrategy {
public:
  SpaceSearch(const ConfigSpace &space, uint64_t seed)
      : space(space), random(seed), visited(space.size()) {}

  void report(ConfigId id, std::optional<double> cost) override {
    visited.setCost(id, cost);
  }

protected:
  /// A random point that was not visited; nothing when all were.
  std::optional<ConfigId> visitOther() {
    auto id = visited.pickOther(random);
    if (id)
      visited.insert(*id);
    return id;
  }

  const ConfigSpace &space;
  Random random;
  Visited visited;
};

/// Every point, in the order of the space or in a random one.
class Exhaustive : public SpaceSearch {
public:
  using SpaceSearch::SpaceSearch;

  std::optional<ConfigId> propose() override {
    if (visited.isFull())
      return std::nullopt;
    while (visited.contains(next))
      ++next;
    visited.insert(next);
    return next;
  }

private:
  ConfigId next = 0;
};

class RandomSearch : public SpaceSearch {
public:
  using SpaceSearch::SpaceSearch;

  std::optional<ConfigId> propose() override { return visitOther(); }
};

/// Genetic algorithm: a population of 20, parents by tournaments of two,
/// uniform crossover, one parameter in ten mutated; the best two of a
/// generation stay.
class Genetic : public SpaceSearch {
public:
  using SpaceSearch::SpaceSearch;

  std::optional<ConfigId> propose() override {
    auto id = population.size() < populationSize ? visited.pickOther(random)
                                                 : child();
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

  std::vector<ConfigId> population, offspring;
  std::vector<uint16_t> point;
};

/// Iterated local search: from a point go to the first better one that differs
/// in one parameter; at a local optimum, start again from a random point.
class LocalSearch : public SpaceSearch {
public:
  using SpaceSearch::SpaceSearch;

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
    return visitOther();
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

  double currentCost = std::numeric_limits<double>::infinity();
  std::vector<ConfigId> open; ///< neighbours not looked at, in random order
};

/// Simulated annealing (Kirkpatrick, Gelatt, Vecchi 1983) on relative costs:
/// four of five moves go to a nearest neighbour, the others change one
/// parameter to any value. Starts anew from a random point when it is frozen.
class Annealing : public SpaceSearch {
public:
  using SpaceSearch::SpaceSearch;

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
    return visitOther();
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

  std::optional<ConfigId> current;
  double temperature = firstTemperature;
  std::vector<ConfigId> around;
};

} // namespace

std::span<const std::string_view> strategyNames() {
  static constexpr std::array<std::string_view, 6> names = {
      "surrogate", "annealing", "genetic", "local", "random", "exhaustive"};
  return names;
}

Result<std::unique_ptr<SearchStrategy>>
makeStrategy(std::string_view name, const ConfigSpace &space, uint64_t seed) {
  if (name == "surrogate")
    return std::make_unique<SurrogateSearch>(space, seed);
  if (name == "annealing")
    return std::make_unique<Annealing>(space, seed);
  if (name == "genetic")
    return std::make_unique<Genetic>(space, seed);
  if (name == "local")
    return std::make_unique<LocalSearch>(space, seed);
  if (name == "random")
    return std::make_unique<RandomSearch>(space, seed);
  if (name == "exhaustive")
    return std::make_unique<Exhaustive>(space, seed);
  return fail(ErrorKind::Usage,
              fmt::format("there is no search strategy '{}'; choose of {}",
                          name, fmt::join(strategyNames(), ", ")));
}

} // namespace mgpu::tuner
