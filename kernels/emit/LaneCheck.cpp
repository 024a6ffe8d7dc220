// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/emit/LaneCheck.h"

#include "kernels/emit/SubgroupBarrier.h"
#include "kernels/emit/ThreadValues.h"
#include "kernels/emit/Uniformity.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <optional>
#include <vector>

using namespace mlir;

namespace mgpu::kernels {

namespace {

/// Which threads of a block come to a place, as far as that follows from their
/// own places.
using Coming = std::vector<bool>;

class LaneCheck {
public:
  LaneCheck(func::FuncOp entry, Dim3 block)
      : entry(entry), values(block), block(block) {}

  LogicalResult run() {
    return walk(entry.getBody().front(), Coming(block.volume(), true));
  }

private:
  LogicalResult walk(Block &ops, const Coming &coming) {
    for (Operation &op : ops)
      if (op.getNumRegions() != 0 && findInSubgroup(&op) &&
          failed(enter(&op, coming)))
        return failure();
    return success();
  }

  LogicalResult enter(Operation *op, const Coming &coming) {
    // A number for each thread: threads of one number go one way.
    std::vector<uint64_t> ways;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Attribute each : values.of(branch.getCondition()))
        ways.push_back(cast<IntegerAttr>(each).getValue().getZExtValue());
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      ways = tripsOf(loop);
    }
    if (ways.empty()) { // they may all go the same
      for (Region &region : op->getRegions())
        for (Block &inner : region)
          if (failed(walk(inner, coming)))
            return failure();
      return success();
    }
    if (part(ways, coming)) {
      Operation *inside = findInSubgroup(op);
      auto error = ir::emitProgramError(inside);
      if (!madeFor(inside).empty())
        error << "(made for '" << madeFor(inside) << "') ";
      return error << "is under control flow that is not the same for all "
                      "lanes of a subgroup: they part at the '"
                   << op->getName() << "' at "
                   << ir::describeLocation(op->getLoc())
                   << "; move it to where all of them pass";
    }
    for (auto [k, region] : llvm::enumerate(op->getRegions())) {
      Coming inside = coming;
      for (size_t thread = 0; thread < inside.size(); ++thread)
        inside[thread] = inside[thread] && (ways[thread] != 0) == (k == 0);
      if (!region.empty() && failed(walk(region.front(), inside)))
        return failure();
    }
    return success();
  }

  static Operation *findInSubgroup(Operation *op) {
    Operation *found = nullptr;
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      if (meetsInSubgroup(inner))
        found = inner;
      return found ? WalkResult::interrupt() : WalkResult::advance();
    });
    return found;
  }

  std::vector<uint64_t> tripsOf(scf::ForOp loop) {
    const auto &low = values.of(loop.getLowerBound()),
               &high = values.of(loop.getUpperBound()),
               &step = values.of(loop.getStep());
    std::vector<uint64_t> trips;
    if (low.empty() || high.empty() || step.empty())
      return trips;
    for (size_t thread = 0; thread < low.size(); ++thread) {
      auto count = constantTripCount(
          low[thread], high[thread], step[thread], !loop.getUnsignedCmp(),
          [](Value, Value, bool) { return std::nullopt; });
      if (!count)
        return {};
      trips.push_back(count->getZExtValue());
    }
    return trips;
  }

  bool part(const std::vector<uint64_t> &ways, const Coming &coming) const {
    for (size_t first = 0; first < ways.size(); first += subgroupSize) {
      std::optional<uint64_t> way;
      const size_t end = std::min(first + subgroupSize, ways.size());
      for (size_t thread = first; thread < end; ++thread) {
        if (coming[thread] && way.value_or(ways[thread]) != ways[thread])
          return true;
        if (coming[thread])
          way = ways[thread];
      }
    }
    return false;
  }

  func::FuncOp entry;
  ThreadValues values;
  Dim3 block;
};

} // namespace

LogicalResult checkLanesMeet(func::FuncOp entry, Dim3 block) {
  return LaneCheck(entry, block).run();
}

} // namespace mgpu::kernels
