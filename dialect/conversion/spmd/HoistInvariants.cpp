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

/// What FillSplats makes anew for each of its uses.
bool isFree(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() ||
         isa<tensor::EmptyOp, linalg::FillOp>(op);
}

/// The bits of the tensors among `values`, each value counted once;
/// nothing where one of them has a size that is not known.
std::optional<uint64_t> bitsOf(llvm::ArrayRef<Value> values) {
  uint64_t bits = 0;
  for (Value value : llvm::SmallPtrSet<Value, 8>(values.begin(), values.end()))
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

/// What `op` and its regions take from outside of it.
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

  bool mayMove(Operation *op) {
    if (!isa<arith::ArithDialect>(op->getDialect()) &&
        !isa<linalg::LinalgOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp>(op))
      return false;
    if (!isMemoryEffectFree(op) || !isSpeculatable(op))
      return false;
    llvm::SmallVector<Value> read;
    for (Value value : takenBy(op)) {
      Operation *from = value.getDefiningOp();
      const bool isMade = from && isFree(from);
      if (!isOutside(value) &&
          !(isMade && llvm::all_of(from->getOperands(), [&](Value of) {
              return isOutside(of) ||
                     (of.getDefiningOp() && isFree(of.getDefiningOp()));
            })))
        return false;
      if (!isMade)
        read.push_back(value);
    }
    auto made = bitsOf(llvm::to_vector(ValueRange(op->getResults())));
    auto from = bitsOf(read);
    return made && from && *made <= *from;
  }
  void move(Operation *op) {
    for (Value value : takenBy(op))
      if (!isOutside(value))
        move(value.getDefiningOp());
    loop.moveOutOfLoop(op);
  }

  LoopLikeOpInterface loop;
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
