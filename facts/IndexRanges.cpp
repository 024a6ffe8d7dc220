// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "facts/IndexRanges.h"

#include "mlir/Analysis/DataFlow/ConstantPropagationAnalysis.h"
#include "mlir/Analysis/DataFlow/DeadCodeAnalysis.h"
#include "mlir/Analysis/DataFlow/IntegerRangeAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace mgpu::facts {

/// Writes the bounds of ids into the module.
static void setBounds(ModuleOp module, Dim3 block, Dim3 maxGrid) {
  Builder b(module.getContext());
  auto of = [](Dim3 sizes, gpu::Dimension dim) -> uint64_t {
    return dim == gpu::Dimension::x   ? sizes.x
           : dim == gpu::Dimension::y ? sizes.y
                                      : sizes.z;
  };
  auto bound = [&](auto id, uint64_t size) {
    id.setUpperBoundAttr(b.getIndexAttr(int64_t(size)));
  };
  module.walk([&](Operation *op) {
    if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
      bound(id, of(block, id.getDimension()));
    else if (auto id = dyn_cast<gpu::BlockIdOp>(op))
      bound(id, of(maxGrid, id.getDimension()));
    else if (auto dim = dyn_cast<gpu::GridDimOp>(op))
      bound(dim, of(maxGrid, dim.getDimension()));
    else if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
      bound(dim, of(block, dim.getDimension()));
    else if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
      bound(id, of(block, id.getDimension()) * of(maxGrid, id.getDimension()));
    else if (auto lane = dyn_cast<gpu::LaneIdOp>(op))
      bound(lane, 32);
    else if (auto id = dyn_cast<gpu::SubgroupIdOp>(op))
      bound(id, 32);
    else if (auto count = dyn_cast<gpu::NumSubgroupsOp>(op))
      bound(count, 32);
    else if (auto size = dyn_cast<gpu::SubgroupSizeOp>(op))
      bound(size, 32);
  });
}

IndexRanges::IndexRanges(ModuleOp module, Dim3 block, Dim3 maxGrid) {
  setBounds(module, block, maxGrid);
  solver.load<dataflow::DeadCodeAnalysis>();
  solver.load<dataflow::SparseConstantPropagation>();
  solver.load<dataflow::IntegerRangeAnalysis>();
  // If it fails, nothing is known, and every index takes 64 bits.
  (void)solver.initializeAndRun(module);
}

std::optional<IndexRanges::Bounds> IndexRanges::of(Value value) const {
  auto *lattice = solver.lookupState<dataflow::IntegerValueRangeLattice>(value);
  if (!lattice || lattice->getValue().isUninitialized())
    return std::nullopt;
  const ConstantIntRanges &range = lattice->getValue().getValue();
  if (range.smin().getBitWidth() == 0)
    return std::nullopt;
  return Bounds{range.smin(), range.smax()};
}

bool IndexRanges::fitsInt(Value value) const {
  if (!value.getType().isIndex())
    return false;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isSignedIntN(32); // as its literal
  if (auto argument = dyn_cast<BlockArgument>(value))
    if (isa<func::FuncOp>(argument.getOwner()->getParentOp()))
      return false;
  if (value.getDefiningOp<func::CallOp>())
    return false;
  auto bounds = of(value);
  return bounds && bounds->low.isSignedIntN(32) &&
         bounds->high.isSignedIntN(32);
}

bool IndexRanges::isNonNegative(Value value) const {
  auto bounds = of(value);
  return bounds && bounds->low.isNonNegative();
}

bool IndexRanges::cannotOverflow(Value a, Value b, char sign) const {
  auto x = of(a), y = of(b);
  if (!x || !y || x->low.getBitWidth() != y->low.getBitWidth())
    return false;
  for (const APInt &p : {x->low, x->high})
    for (const APInt &q : {y->low, y->high}) {
      bool overflow = false;
      if (sign == '+')
        (void)p.sadd_ov(q, overflow);
      else if (sign == '-')
        (void)p.ssub_ov(q, overflow);
      else
        (void)p.smul_ov(q, overflow);
      if (overflow)
        return false;
    }
  return true;
}

uint32_t divisorOf(int64_t number) {
  return uint32_t(1) << llvm::countr_zero(uint64_t(number) | mostDivisor);
}

/// `depth` bounds the work on long chains.
static uint32_t divisorOf(Value value, unsigned depth) {
  constexpr unsigned deepest = 24;
  APInt number;
  if (matchPattern(value, m_ConstantInt(&number)))
    return divisorOf(number.getSExtValue());
  if (depth == deepest)
    return 1;
  auto of = [&](Value operand) { return divisorOf(operand, depth + 1); };
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && loop.getInductionVar() == value
               ? std::min(of(loop.getLowerBound()), of(loop.getStep()))
               : 1;
  }
  // Sums and products that wrap around stay multiples of a power of two.
  return llvm::TypeSwitch<Operation *, uint32_t>(value.getDefiningOp())
      .Case<gpu::ThreadIdOp, gpu::GlobalIdOp>([&](auto id) {
        return id.getDimension() == gpu::Dimension::x ? mostDivisor : 1;
      })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
            arith::ExtUIOp, arith::TruncIOp>(
          [&](auto cast) { return of(cast.getIn()); })
      .Case<arith::AddIOp, arith::SubIOp, arith::MinSIOp, arith::MaxSIOp,
            arith::RemUIOp, arith::RemSIOp>(
          [&](auto op) { return std::min(of(op.getLhs()), of(op.getRhs())); })
      .Case([&](arith::MulIOp op) {
        return std::min(of(op.getLhs()) * of(op.getRhs()), mostDivisor);
      })
      .Case([&](arith::SelectOp op) {
        return std::min(of(op.getTrueValue()), of(op.getFalseValue()));
      })
      .Default([](Operation *) { return 1; });
}

uint32_t divisorOf(Value value) { return divisorOf(value, 0); }

} // namespace mgpu::facts
