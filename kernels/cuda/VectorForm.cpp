// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/VectorForm.h"

#include "kernels/lower/SubgroupBarrier.h"
#include "kernels/lower/Uniformity.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
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
    if (!isReductionOfNeighbours(op) && !isa<gpu::BarrierOp>(op))
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
static bool keepsNumber(Operation *op, const IndexRanges &ranges) {
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

std::optional<int64_t> VectorForm::step(Value value,
                                        const IndexRanges &ranges) const {
  if (!isVarying(value))
    return 0;
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (isIdAlongX(op))
    return 1;
  const bool isCast = isa<arith::IndexCastOp, arith::IndexCastUIOp>(op);
  if ((!isCast && !isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) ||
      !keepsNumber(op, ranges))
    return std::nullopt;
  if (isCast)
    return step(op->getOperand(0), ranges);
  auto a = step(op->getOperand(0), ranges), b = step(op->getOperand(1), ranges);
  if (!a || !b)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *a + *b;
  if (isa<arith::SubIOp>(op))
    return *a - *b;
  APInt factor;
  if (*b == 0 && matchPattern(op->getOperand(1), m_ConstantInt(&factor)) &&
      factor.isSignedIntN(16) && std::abs(*a) < (1 << 16))
    return *a * factor.getSExtValue();
  return std::nullopt;
}

/// Whether the threads of a block meet in nothing but reductions over all of
/// them, and barriers.
static bool meetInReductionsAlone(func::FuncOp entry) {
  auto module = entry->getParentOfType<ModuleOp>();
  return !module
              .walk([&](Operation *op) {
                auto alloca = dyn_cast<memref::AllocaOp>(op);
                bool other = isConvergent(op) &&
                             (!(isReductionOfNeighbours(op) ||
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
