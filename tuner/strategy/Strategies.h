// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_STRATEGY_STRATEGIES_H
#define MGPU_TUNER_STRATEGY_STRATEGIES_H

// The strategies behind makeStrategy, one a file.

#include "tuner/strategy/SearchStrategy.h"
#include "tuner/strategy/Visited.h"

namespace mgpu::tuner {

std::unique_ptr<SearchStrategy> makeExhaustive(const ConfigSpace &space);
std::unique_ptr<SearchStrategy> makeRandomSearch(const ConfigSpace &space,
                                                 uint64_t seed);
std::unique_ptr<SearchStrategy> makeAnnealing(const ConfigSpace &space,
                                              uint64_t seed);
std::unique_ptr<SearchStrategy> makeGenetic(const ConfigSpace &space,
                                            uint64_t seed);
std::unique_ptr<SearchStrategy> makeLocalSearch(const ConfigSpace &space,
                                                uint64_t seed);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_STRATEGY_STRATEGIES_H
