// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_HOISTINVARIANTS
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Whether FillSplats makes the result anew for each of its uses.
bool isFree(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tensor::EmptyOp, linalg::FillOp>(op);
}

/// The bits of the tensors among `values`; nothing where one of them has a size
/// that is not known.
std::optional<uint64_t> bitsOf(ValueRange values) {
  uint64_t bits = 0;
  for (Value value : values)
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      if (!type.hasStaticShape() ||
          !type.getElementType().isIntOrIndexOrFloat())
        return std::nullopt;
      const uint64_t width =
          type.getElementType().isIndex() ? 64 : type.getElementTypeBitWidth();
      bits += uint64_t(type.getNumElements()) * width;
    }
  return bits;
}

/// The values that `op` and its regions take from outside of it.
llvm::SetVector<Value> takenBy(Operation *op) {
  llvm::SetVector<Value> taken(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), taken);
  return taken;
}

class Hoist {
public:
  explicit Hoist(LoopLikeOpInterface loop) : loop(loop) {}

  void run(Block &body) {
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
      if (!isFree(&op) && mayMove(&op))
        move(&op);
  }

private:
  bool isOutside(Value value) { return loop.isDefinedOutsideOfLoop(value); }

  /// Whether it is there before the loop, or can be made there for nothing.
  bool canLeave(Value value) {
    Operation *from = value.getDefiningOp();
    return isOutside(value) ||
           (from && isFree(from) &&
            llvm::all_of(from->getOperands(),
                         [&](Value of) { return canLeave(of); }));
  }

  /// Counts what leaves if `op` does: all of it lives as long as the loop.
  bool mayMove(Operation *op) {
    const bool isView = isa<tensor::ExtractSliceOp, tensor::ExpandShapeOp,
                            tensor::CollapseShapeOp>(op);
    if (!isView && !isa<arith::ArithDialect>(op->getDialect()) &&
        !isa<linalg::LinalgOp>(op))
      return false;
    if (!isMemoryEffectFree(op) || !isSpeculatable(op))
      return false;
    llvm::SmallVector<Value> fresh;
    for (Value value : takenBy(op)) {
      if (!canLeave(value))
        return false;
      Operation *from = value.getDefiningOp();
      if (!known.contains(value) && !(from && isFree(from)))
        fresh.push_back(value);
    }
    auto own = bitsOf(op->getResults()), more = bitsOf(fresh);
    if (!own || !more || (!isView && made + *own > read + *more))
      return false;
    made += isView ? 0 : *own;
    read += *more;
    known.insert(fresh.begin(), fresh.end());
    known.insert(op->result_begin(), op->result_end());
    return true;
  }

  void move(Operation *op) {
    for (Value value : takenBy(op))
      if (!isOutside(value))
        move(value.getDefiningOp());
    loop.moveOutOfLoop(op);
  }

  LoopLikeOpInterface loop;
  llvm::SmallPtrSet<Value, 8> known; ///< what leaves, and all that it reads
  uint64_t read = 0; ///< bits from before the loop that what leaves reads
  uint64_t made = 0; ///< bits of what leaves
};

struct HoistInvariants : impl::HoistInvariantsBase<HoistInvariants> {
  using HoistInvariantsBase::HoistInvariantsBase;

  void runOnOperation() override {
    // Inner loops first: what leaves one may leave the one around it.
    getOperation().walk([&](Operation *op) {
      if (auto loop = dyn_cast<scf::ForOp>(op))
        Hoist(loop).run(*loop.getBody());
      else if (auto loop = dyn_cast<scf::WhileOp>(op))
        Hoist(loop).run(*loop.getAfterBody());
    });
  }
};

} // namespace

} // namespace mgpu::conversion
