// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_PLAN_FREERANGES_H
#define MGPU_PLANNER_PLAN_FREERANGES_H

// The bytes of a device's arena that no live buffer holds.

#include <cstdint>
#include <span>
#include <vector>

namespace mgpu::planner {

/// The last step of a stream that uses a buffer, as the stream's count of them.
struct LastUse {
  uint32_t stream, count;
};

using LastUses = std::vector<LastUse>;

/// Bytes no live buffer holds, and who held them last; nobody where all that is
/// to come follows that. One of the owner's last uses stands here as well, for
/// each find() looks at all ranges, and most owners have no other.
struct FreeRange {
  uint64_t begin, size;
  uint32_t owner;
  LastUse first;
  bool isOnly; ///< the owner has no last use but `first`
  uint64_t end() const { return begin + size; }
};
inline constexpr uint32_t nobody = UINT32_MAX;

/// Which of the free runs that hold a buffer it takes: the smallest; or the
/// first, but the end of the last if it is brief, so that what comes and goes
/// does not cut up the place of what stays.
enum class Fit : uint8_t { Smallest, Ends };

class FreeRanges {
public:
  /// Adds what a former owner held; its last uses are known from here on.
  void add(const FreeRange &range);
  /// Joins ranges that any buffer may have from now on. `floor` is, by stream,
  /// how many of its steps are before all that is to come.
  void settle(std::span<const uint32_t> floor,
              std::span<const LastUses> lastUsesOf);

  /// A run of adjacent ranges for a buffer of `size` bytes. `done` is, by
  /// stream, how many of its steps are before every use of the buffer. Where
  /// none is found: the last run of all, which may end at the arena's top.
  struct Run {
    bool isFound;
    uint64_t begin, end;
  };
  Run find(uint64_t size, std::span<const uint32_t> done,
           std::span<const LastUses> lastUsesOf, Fit fit, bool isBrief) const;
  /// Takes [begin, end) out.
  void occupy(uint64_t begin, uint64_t end);

private:
  /// The first range that begins at `offset` or behind it.
  std::vector<FreeRange>::iterator rangeFrom(uint64_t offset);

  /// By offset, disjoint. A vector, as each find() looks at all of them.
  std::vector<FreeRange> ranges;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_PLAN_FREERANGES_H
