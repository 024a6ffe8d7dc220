// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TUNER_STRATEGY_SEARCHSTRATEGY_H
#define MGPU_TUNER_STRATEGY_SEARCHSTRATEGY_H

// A search strategy says which configuration to measure next and hears what
// came of it. It never measures itself: the same strategy drives a device, a
// recorded space, or a resumed session that reports old results first.

#include "tuner/space/ConfigSpace.h"

#include <memory>
#include <string_view>

namespace mgpu::tuner {

class SearchStrategy {
public:
  virtual ~SearchStrategy() = default;
  /// A point not proposed or reported before; none when all have been.
  virtual std::optional<ConfigId> propose() = 0;
  /// Reports a point, proposed or not: its cost (a time; positive, lower is
  /// better), or none where it failed.
  virtual void report(ConfigId id, std::optional<double> cost) = 0;
};

/// Names that makeStrategy takes, the default first.
std::span<const std::string_view> strategyNames();

/// `space` must outlive the strategy. Equal seeds and reports give equal
/// proposals on every machine of one kind of floating point. Usage error for an
/// unknown name.
Result<std::unique_ptr<SearchStrategy>>
makeStrategy(std::string_view name, const ConfigSpace &space, uint64_t seed);

} // namespace mgpu::tuner

#endif // MGPU_TUNER_STRATEGY_SEARCHSTRATEGY_H
