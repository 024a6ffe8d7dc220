// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/LaneCheck.h"

#include "facts/ThreadValues.h"
#include "facts/Uniformity.h"
#include "kernels/lower/SubgroupBarrier.h"

#include "dialect/mgpu/Diagnostics.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <optional>
#include <vector>

using namespace mlir;

namespace mgpu::kernels {

bool meetsInSubgroup(Operation *op) {
  return isa<gpu::ShuffleOp, gpu::RotateOp, gpu::SubgroupReduceOp>(op) ||
         (isa<gpu::BarrierOp>(op) && !madeFor(op).empty());
}

namespace {

/// A control operation on the way to a place, and a number for each thread:
/// threads of one number go one way.
struct Fork {
  Operation *control;
  std::vector<uint64_t> ways;
  bool isFirst; ///< the way goes through the first region, as any but 0 does
};

class LaneCheck {
public:
  LaneCheck(func::FuncOp entry, Dim3 block)
      : entry(entry), uniformity(entry.getBody()),
        affine(entry.getBody(), {0, 0, 0}, block),
        values(affine, int64_t(block.volume())), block(block) {}

  LogicalResult run() { return walk(entry.getBody().front()); }

private:
  LogicalResult walk(Block &ops) {
    for (Operation &op : ops) {
      if (meetsInSubgroup(&op) && failed(check(&op)))
        return failure();
      if (op.getNumRegions() != 0 && facts::findConvergent(&op) &&
          failed(enter(&op)))
        return failure();
    }
    return success();
  }

  LogicalResult enter(Operation *op) {
    std::vector<uint64_t> ways = waysAt(op);
    if (ways.empty() && !uniformity.hasUniformControl(op))
      return success(); // who comes is not known
    for (auto [k, region] : llvm::enumerate(op->getRegions())) {
      if (region.empty())
        continue;
      if (!ways.empty())
        path.push_back({op, ways, k == 0});
      const LogicalResult done = walk(region.front());
      if (!ways.empty())
        path.pop_back();
      if (failed(done))
        return failure();
    }
    return success();
  }

  /// Empty where they follow from more than the threads' places.
  std::vector<uint64_t> waysAt(Operation *op) {
    std::vector<uint64_t> ways;
    if (auto branch = dyn_cast<scf::IfOp>(op)) {
      for (Attribute each : values.of(branch.getCondition())) {
        auto number = dyn_cast<IntegerAttr>(each);
        if (!number) // poison
          return {};
        ways.push_back(number.getValue().getZExtValue());
      }
      return ways;
    }
    auto loop = dyn_cast<scf::ForOp>(op);
    if (!loop)
      return ways;
    const auto &low = values.of(loop.getLowerBound()),
               &high = values.of(loop.getUpperBound()),
               &step = values.of(loop.getStep());
    if (low.empty() || high.empty() || step.empty())
      return ways;
    for (size_t thread = 0; thread < low.size(); ++thread) {
      auto count = constantTripCount(
          low[thread], high[thread], step[thread], !loop.getUnsignedCmp(),
          [](Value, Value, bool) { return std::nullopt; });
      if (!count)
        return {};
      ways.push_back(count->getZExtValue());
    }
    return ways;
  }

  /// Fails where some lanes of a subgroup come to `op`, having parted from
  /// others on the way.
  LogicalResult check(Operation *op) {
    for (size_t first = 0; first < block.volume(); first += subgroupSize) {
      std::vector<size_t> lanes;
      for (size_t thread = first;
           thread < std::min<size_t>(first + subgroupSize, block.volume());
           ++thread)
        lanes.push_back(thread);
      Operation *parting = nullptr;
      for (const Fork &fork : path) {
        auto goElsewhere = [&](size_t thread) {
          return fork.ways[thread] != fork.ways[lanes.front()];
        };
        if (!parting && llvm::any_of(lanes, goElsewhere))
          parting = fork.control;
        llvm::erase_if(lanes, [&](size_t thread) {
          return (fork.ways[thread] != 0) != fork.isFirst;
        });
        if (lanes.empty())
          break;
      }
      if (parting && !lanes.empty())
        return report(op, parting);
    }
    return success();
  }

  static LogicalResult report(Operation *op, Operation *parting) {
    auto error = ir::emitProgramError(op);
    if (!madeFor(op).empty())
      error << "(made for '" << madeFor(op) << "') ";
    return error << "is under control flow that is not the same for all lanes "
                    "of a subgroup: they part at the '"
                 << parting->getName() << "' at "
                 << ir::describeLocation(parting->getLoc())
                 << "; move it to where all of them pass";
  }

  func::FuncOp entry;
  facts::Uniformity uniformity;
  facts::AffineEvaluator affine;
  facts::ThreadValues values;
  Dim3 block;
  std::vector<Fork> path;
};

} // namespace

LogicalResult checkLanesMeet(func::FuncOp entry, Dim3 block) {
  for (Operation &op : entry.getBody().front())
    if (op.getNumRegions() != 0 && !facts::isConvergent(&op) &&
        facts::findConvergent(&op))
      return LaneCheck(entry, block).run();
  return success();
}

LogicalResult checkBarriers(func::FuncOp kernel) {
  const facts::Uniformity uniformity(kernel.getBody());
  WalkResult result = kernel.walk([&](Operation *op) {
    if (!isa<gpu::BarrierOp, gpu::AllReduceOp>(op) || !madeFor(op).empty())
      return WalkResult::advance();
    for (Operation *above = op->getParentOp(); above != kernel;
         above = above->getParentOp()) {
      if (!isa<scf::ForOp, scf::IfOp, scf::WhileOp>(above) ||
          uniformity.hasUniformControl(above))
        continue;
      ir::emitProgramError(op)
          << "is under control flow that is not the same for all threads of "
             "the block: they may part at the '"
          << above->getName() << "' at "
          << ir::describeLocation(above->getLoc())
          << "; move it to where all threads pass";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

} // namespace mgpu::kernels
