// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_SUPPORT_COLLECTIVE_H
#define MGPU_SUPPORT_COLLECTIVE_H

// Which ranks of a collective send and which receive. A rank is the position
// of a member.

#include "support/Types.h"

#include <span>
#include <string>

namespace mgpu {

/// One send of a permute.
struct RankPair {
  uint32_t source = 0, target = 0;
  auto operator<=>(const RankPair &) const = default;
};

/// The rank that `rank` sends to, or receives from; none where it does not.
std::optional<uint32_t> targetOf(std::span<const RankPair> pairs,
                                 uint32_t rank);
std::optional<uint32_t> sourceOf(std::span<const RankPair> pairs,
                                 uint32_t rank);

/// Whether all ranks are below `numRanks` and none is the source of two pairs
/// or the target of two. Errors: Invalid.
Result<void> checkPairs(std::span<const RankPair> pairs, size_t numRanks);

/// The pairs in the dialect's spelling: "[[0, 1], [1, 0]]".
std::string toString(std::span<const RankPair> pairs);

struct CollectiveSides {
  bool sends;    ///< what is in the send box counts
  bool receives; ///< the recv box is written
};

/// The sides of one rank. `Call` has a kind, the root of a broadcast and the
/// pairs of a permute; in a permute a rank without a source receives zeros.
template <typename Call>
CollectiveSides sidesOf(const Call &call, size_t rank) {
  switch (call.kind) {
  case CollectiveKind::Broadcast:
    return {rank == call.root, true};
  case CollectiveKind::SendRecv:
    return {rank == 0, rank == 1};
  case CollectiveKind::Permute:
    return {targetOf(call.pairs, uint32_t(rank)).has_value(), true};
  default:
    return {true, true};
  }
}

} // namespace mgpu

#endif // MGPU_SUPPORT_COLLECTIVE_H
