// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every point, in the order of the space or in a random one.
#include "tuner/strategy/Strategies.h"

namespace mgpu::tuner {

namespace {

class Exhaustive : public SearchStrategy {
public:
  explicit Exhaustive(const ConfigSpace &space) : visited(space.size()) {}

  std::optional<ConfigId> propose() override {
    if (visited.isFull())
      return std::nullopt;
    while (visited.contains(next))
      ++next;
    visited.insert(next);
    return next;
  }
  void report(ConfigId id, std::optional<double> cost) override {
    visited.setCost(id, cost);
  }

private:
  Visited visited;
  ConfigId next = 0;
};

class RandomSearch : public SearchStrategy {
public:
  RandomSearch(const ConfigSpace &space, uint64_t seed)
      : random(seed), visited(space.size()) {}

  std::optional<ConfigId> propose() override {
    auto id = visited.pickOther(random);
    if (id)
      visited.insert(*id);
    return id;
  }
  void report(ConfigId id, std::optional<double> cost) override {
    visited.setCost(id, cost);
  }

private:
  Random random;
  Visited visited;
};

} // namespace

std::unique_ptr<SearchStrategy> makeExhaustive(const ConfigSpace &space) {
  return std::make_unique<Exhaustive>(space);
}
std::unique_ptr<SearchStrategy> makeRandomSearch(const ConfigSpace &space,
                                                 uint64_t seed) {
  return std::make_unique<RandomSearch>(space, seed);
}

} // namespace mgpu::tuner
