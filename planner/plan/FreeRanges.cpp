// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/plan/FreeRanges.h"

#include <algorithm>
#include <array>

namespace mgpu::planner {

/// Whether a buffer may have a range: `done` is as find() has it.
static bool mayFollow(std::span<const uint32_t> done, const FreeRange &range,
                      std::span<const LastUses> lastUsesOf) {
  if (range.owner == nobody)
    return true;
  if (done[range.first.stream] < range.first.count)
    return false;
  return range.isOnly ||
         std::ranges::all_of(lastUsesOf[range.owner], [&](LastUse use) {
           return done[use.stream] >= use.count;
         });
}

std::vector<FreeRange>::iterator FreeRanges::rangeFrom(uint64_t offset) {
  return std::ranges::lower_bound(ranges, offset, {}, &FreeRange::begin);
}

void FreeRanges::add(const FreeRange &range) {
  ranges.insert(rangeFrom(range.begin), range);
}

void FreeRanges::settle(std::span<const uint32_t> floor,
                        std::span<const LastUses> lastUsesOf) {
  size_t kept = 0;
  for (FreeRange range : ranges) {
    if (mayFollow(floor, range, lastUsesOf))
      range.owner = nobody;
    FreeRange *before = kept > 0 ? &ranges[kept - 1] : nullptr;
    if (before && range.owner == nobody && before->owner == nobody &&
        before->end() == range.begin)
      before->size += range.size;
    else
      ranges[kept++] = range;
  }
  ranges.resize(kept);
}

FreeRanges::Run FreeRanges::find(uint64_t size, std::span<const uint32_t> done,
                                 std::span<const LastUses> lastUsesOf, Fit fit,
                                 bool isBrief) const {
  uint64_t best = UINT64_MAX, bestSize = UINT64_MAX;
  uint64_t runBegin = 0, runEnd = 0;
  auto closeRun = [&] {
    const uint64_t runSize = runEnd - runBegin;
    if (runSize < size)
      return;
    if (fit == Fit::Smallest ? runSize < bestSize
                             : isBrief || best == UINT64_MAX)
      best = fit == Fit::Ends && isBrief ? runEnd - size : runBegin;
    bestSize = std::min(bestSize, runSize);
  };
  // No run fits better than one of its own size, or than the first at all.
  auto isFound = [&] {
    return fit == Fit::Smallest ? bestSize == size
                                : best != UINT64_MAX && !isBrief;
  };
  for (const FreeRange &range : ranges) {
    bool usable = mayFollow(done, range, lastUsesOf);
    if (!usable || range.begin != runEnd) {
      closeRun();
      if (isFound())
        break;
      runBegin = runEnd = range.begin;
    }
    runEnd = usable ? range.end() : runBegin;
  }
  if (!isFound())
    closeRun();
  if (best == UINT64_MAX)
    return {false, runBegin, runEnd};
  return {true, best, best + size};
}

void FreeRanges::occupy(uint64_t begin, uint64_t end) {
  auto first = rangeFrom(begin);
  if (first != ranges.begin() && std::prev(first)->end() > begin)
    --first; // it starts in the middle of a range
  auto last = first;
  std::array<FreeRange, 2> left; // at most what is before and what is behind
  size_t lefts = 0;
  for (; last != ranges.end() && last->begin < end; ++last) {
    auto keep = [&](uint64_t from, uint64_t to) {
      left[lefts] = *last;
      left[lefts].begin = from;
      left[lefts++].size = to - from;
    };
    if (last->begin < begin)
      keep(last->begin, begin);
    if (last->end() > end)
      keep(end, last->end());
  }
  ranges.insert(ranges.erase(first, last), left.begin(), left.begin() + lefts);
}

} // namespace mgpu::planner
