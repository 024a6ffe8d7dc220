// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Collective.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu {

std::optional<uint32_t> targetOf(std::span<const RankPair> pairs,
                                 uint32_t rank) {
  auto at = std::ranges::find(pairs, rank, &RankPair::source);
  return at == pairs.end() ? std::nullopt : std::optional(at->target);
}

std::optional<uint32_t> sourceOf(std::span<const RankPair> pairs,
                                 uint32_t rank) {
  auto at = std::ranges::find(pairs, rank, &RankPair::target);
  return at == pairs.end() ? std::nullopt : std::optional(at->source);
}

Result<void> checkPairs(std::span<const RankPair> pairs, size_t numRanks) {
  std::vector<bool> sends(numRanks), receives(numRanks);
  for (const RankPair &pair : pairs) {
    if (pair.source >= numRanks || pair.target >= numRanks)
      return fail(ErrorKind::Invalid,
                  fmt::format("pair [{}, {}] is outside of {} ranks",
                              pair.source, pair.target, numRanks));
    if (sends[pair.source] || receives[pair.target])
      return fail(ErrorKind::Invalid,
                  fmt::format("pair [{}, {}] names a source or a target that "
                              "another pair has",
                              pair.source, pair.target));
    sends[pair.source] = receives[pair.target] = true;
  }
  return {};
}

std::string toString(std::span<const RankPair> pairs) {
  std::string text = "[";
  for (const RankPair &pair : pairs)
    text += fmt::format("{}[{}, {}]", text.size() > 1 ? ", " : "", pair.source,
                        pair.target);
  return text + "]";
}

} // namespace mgpu
