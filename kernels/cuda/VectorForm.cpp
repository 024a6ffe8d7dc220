// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/VectorForm.h"

#include "kernels/lower/SubgroupBarrier.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// The operations of a region that is gone through once for all threads.
static void walkShared(Region &region,
                       function_ref<void(Operation *)> callback) {
  for (Operation &op : region.getOps()) {
    callback(&op);
    if (isa<scf::ForOp, scf::IfOp>(op))
      for (Region &inner : op.getRegions())
        walkShared(inner, callback);
  }
}

void VectorForm::findRefusal(func::FuncOp entry) {
  walkShared(entry.getBody(), [&](Operation *op) {
    auto isOwnMemory = [&](Value value) {
      return isa<MemRefType>(value.getType()) && isVarying(value);
    };
    if (!reason.empty())
      return;
    auto loop = dyn_cast<scf::ForOp>(op);
    if (loop && loop.getUnsignedCmp())
      reason = "has a loop that counts unsigned: " + describeUse(op);
    else if (!isa<memref::AllocaOp>(op) &&
             llvm::any_of(op->getResults(), isOwnMemory))
      reason = "has a view for each thread: " + describeUse(op);
  });
  // All threads meet there, so it is done once for all of them.
  entry.walk([&](Operation *op) {
    if (!facts::isReductionOfNeighbours(op) && !isa<gpu::BarrierOp>(op))
      return;
    for (Operation *above = op->getParentOp(); above != entry;
         above = above->getParentOp())
      if (!sharesControl(above) && reason.empty())
        reason = describeUse(op) + " where its threads may part";
  });
}

/// Whether a cast or a sum, difference or product surely keeps the number,
/// where it would else begin again within a buffer: an index that wraps around
/// lies outside any.
static bool keepsNumber(Operation *op, const facts::IndexRanges &ranges) {
  auto bitsOf = [](Type type) {
    return type.isIndex() ? 64u : type.getIntOrFloatBitWidth();
  };
  Value first = op->getOperand(0);
  const unsigned to = bitsOf(op->getResult(0).getType()),
                 from = bitsOf(first.getType());
  if (isa<arith::IndexCastUIOp>(op) && to > from)
    return ranges.isNonNegative(first);
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(op)) {
    auto bounds = ranges.of(first);
    return to >= from || (bounds && bounds->low.isSignedIntN(to) &&
                          bounds->high.isSignedIntN(to));
  }
  return to == 64 || ranges.cannotOverflow(first, op->getOperand(1),
                                           isa<arith::AddIOp>(op)   ? '+'
                                           : isa<arith::SubIOp>(op) ? '-'
                                                                    : '*');
}

bool VectorForm::areNeighbours(Value index,
                               const facts::IndexRanges &ranges) const {
  const auto strides =
      uniformity.stridesOf(index, facts::Among::Neighbours, [&](Operation *op) {
        return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::AddIOp,
                   arith::SubIOp, arith::MulIOp>(op) &&
               keepsNumber(op, ranges);
      });
  return strides && (*strides)[0] == 1;
}

/// Whether the threads of a block meet in nothing but reductions over all of
/// them, and barriers.
static bool meetInReductionsAlone(func::FuncOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  return !module
              .walk([&](Operation *op) {
                auto alloca = dyn_cast<memref::AllocaOp>(op);
                bool other = facts::isConvergent(op) &&
                             (!(facts::isReductionOfNeighbours(op) ||
                                isa<gpu::BarrierOp>(op)) ||
                              !madeFor(op).empty() ||
                              op->getParentOfType<func::FuncOp>() != entry);
                other |=
                    isa<gpu::LaneIdOp, gpu::SubgroupIdOp,
                        gpu::DynamicSharedMemoryOp>(op) ||
                    (alloca && gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
                                   alloca.getType()));
                return other ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

bool mayLieBeside(const LaunchShape &shape, bool hasVectorForm, Dim3 block) {
  constexpr uint32_t warp = 32, widest = 16;
  return hasVectorForm && !shape.reshapable && !shape.cluster && block.y == 1 &&
         block.z == 1 && block.x > warp && block.x % warp == 0 &&
         block.x / warp <= widest && (block.x & (block.x - 1)) == 0;
}

std::string vectorRefusal(const LaunchShape &shape, func::FuncOp entry,
                          Dim3 block) {
  if (!shape.reshapable && !meetInReductionsAlone(entry))
    return shape.reason;
  if (block.x % 2 != 0)
    return "has an odd number of threads along x";
  return VectorForm(entry).refusal();
}

} // namespace mgpu::kernels::cuda
