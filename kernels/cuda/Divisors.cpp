// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/Divisors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

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

} // namespace mgpu::kernels::cuda
