// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"

#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_MERGEEQUAL
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

// Within this pass alone: operations are equal only where it is.
constexpr StringLiteral bodyAttr = "equal_body";

/// Equal for equal regions: a hash of the operations' names, attributes, types
/// and constants.
int64_t hashOfRegions(Operation *op) {
  auto ofOperand = [](Value operand) {
    Attribute value;
    return matchPattern(operand, m_Constant(&value)) ? hash_value(value)
                                                     : llvm::hash_code(0);
  };
  llvm::hash_code hash = 0;
  op->walk([&](Operation *inner) {
    if (inner != op)
      hash = llvm::hash_combine(
          hash, OperationEquivalence::computeHash(
                    inner, ofOperand, OperationEquivalence::ignoreHashValue,
                    OperationEquivalence::IgnoreLocations));
  });
  return int64_t(size_t(hash));
}

struct MergeEqual : impl::MergeEqualBase<MergeEqual> {
  using MergeEqualBase::MergeEqualBase;

  void runOnOperation() override {
    Builder b(&getContext());
    getOperation().walk([&](Operation *op) {
      if (op->getNumRegions() > 0 && op->getNumResults() > 0)
        op->setAttr(bodyAttr, b.getI64IntegerAttr(hashOfRegions(op)));
    });
    IRRewriter rewriter(&getContext());
    eliminateCommonSubExpressions(rewriter, getAnalysis<DominanceInfo>(),
                                  getOperation());
    getOperation().walk([](Operation *op) {
      if (op->getNumRegions() > 0)
        op->removeAttr(bodyAttr);
    });
  }
};

} // namespace

} // namespace mgpu::conversion
