// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/RecordAccess.h"

#include <algorithm>
#include <limits>

namespace mgpu::planner {

// More boxes per root than this are replaced by their hull: dependence tests
// stay cheap, and kernels with so many distinct windows gain little from them.
constexpr size_t maxBoxesPerRoot = 12;

static uint64_t addUp(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum)
             ? std::numeric_limits<uint64_t>::max()
             : sum;
}

void recordAccess(std::vector<KernelAccess> &accesses, KernelAccess access) {
  size_t count = 0;
  for (KernelAccess &known : accesses) {
    if (known.root != access.root)
      continue;
    ++count;
    if (known.box != access.box || known.blockSteps != access.blockSteps)
      continue;
    // What is sure to happen stays apart from what may happen to the same
    // bytes, else a guarded write would become a sure one.
    if (known.exact == access.exact) {
      known.reads |= access.reads;
      known.writes |= access.writes;
      if (!known.sets || !access.sets)
        known.sets = std::nullopt;
      else
        for (TouchedSet &set : *access.sets)
          if (!llvm::is_contained(*known.sets, set))
            known.sets->push_back(std::move(set));
      known.mostBytes = addUp(known.mostBytes, access.mostBytes);
      return;
    }
    if (known.exact && known.reads >= access.reads &&
        known.writes >= access.writes)
      return;
  }
  if (count < maxBoxesPerRoot) {
    accesses.push_back(std::move(access));
    return;
  }
  auto [low, high] = access.box.byteRange();
  llvm::erase_if(accesses,
                 [&, &low = low, &high = high](const KernelAccess &known) {
                   if (known.root != access.root)
                     return false;
                   auto [first, last] = known.box.byteRange();
                   low = std::min(low, first);
                   high = std::max(high, last);
                   access.reads |= known.reads;
                   access.writes |= known.writes;
                   access.mostBytes = addUp(access.mostBytes, known.mostBytes);
                   return true;
                 });
  access.box = Box::flat(low, high - low);
  access.exact = false;
  access.blockSteps = {};
  access.sets = std::nullopt;
  accesses.push_back(std::move(access));
}

} // namespace mgpu::planner
