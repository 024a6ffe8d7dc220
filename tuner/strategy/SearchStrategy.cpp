// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/strategy/SearchStrategy.h"

#include "tuner/strategy/Strategies.h"
#include "tuner/strategy/Surrogate.h"

#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace mgpu::tuner {

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
    return makeAnnealing(space, seed);
  if (name == "genetic")
    return makeGenetic(space, seed);
  if (name == "local")
    return makeLocalSearch(space, seed);
  if (name == "random")
    return makeRandomSearch(space, seed);
  if (name == "exhaustive")
    return makeExhaustive(space);
  return fail(ErrorKind::Usage,
              fmt::format("there is no search strategy '{}'; choose of {}",
                          name, fmt::join(strategyNames(), ", ")));
}

} // namespace mgpu::tuner
