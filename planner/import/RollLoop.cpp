// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/RollLoop.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "planner/import/HostValue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <fmt/format.h>

namespace mgpu::planner {

using namespace mlir;

scf::ForOp findLoopToRoll(func::FuncOp function) {
  scf::ForOp best;
  uint64_t bestWork = 0;
  for (Block &block : function.getBody())
    for (auto loop : block.getOps<scf::ForOp>()) {
      if (loop->getNumResults() > 0)
        continue;
      uint64_t work = 0;
      bool prints = false; // in each trip
      loop.getBody()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        prints |= isa<ir::OutputOp>(op);
        work += isa<func::CallOp>(op) ||
                op->getName().getDialectNamespace() == "mgpu";
        return isa<ir::LaunchOp>(op) ? WalkResult::skip()
                                     : WalkResult::advance();
      });
      if (prints)
        continue;
      auto lower = getConstantIntValue(loop.getLowerBound());
      auto upper = getConstantIntValue(loop.getUpperBound());
      // A length that is known only once it is specialised is taken for long.
      uint64_t length = 1024;
      if (lower && upper) // capped: the product with the work must not wrap
        length = *lower < *upper
                     ? std::min<uint64_t>(uint64_t(*upper) - uint64_t(*lower),
                                          uint64_t(1) << 32)
                     : 0;
      if (work * length > bestWork) {
        bestWork = work * length;
        best = loop;
      }
    }
  return best;
}

/// Whether all values lie in [low, high], without a wrap on the way.
static bool staysWithin(Induction values, uint64_t trips, __int128 low,
                        __int128 high) {
  __int128 first = values.first;
  __int128 last = first + __int128(trips - 1) * values.step;
  return low <= std::min(first, last) && std::max(first, last) <= high;
}

std::optional<Induction> deriveInduction(Operation *op, Induction lhs,
                                         std::optional<Induction> rhs,
                                         uint64_t trips) {
  auto widthOf = [](Type type) {
    return isa<IndexType>(type) ? 64u : type.getIntOrFloatBitWidth();
  };
  auto wrapping = [](uint64_t first, uint64_t step) {
    return Induction{{}, int64_t(first), int64_t(step)};
  };
  uint64_t a = uint64_t(lhs.first), s = uint64_t(lhs.step);
  if (!rhs) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtSIOp,
             arith::ExtUIOp, arith::TruncIOp>(op))
      return std::nullopt;
    unsigned from = widthOf(op->getOperand(0).getType());
    if (widthOf(op->getResult(0).getType()) <= from)
      return lhs; // cut when it is stored
    bool isSigned = isa<arith::IndexCastOp, arith::ExtSIOp>(op);
    __int128 half = __int128(1) << (from - 1);
    bool exact = isSigned ? staysWithin(lhs, trips, -half, half - 1)
                          : staysWithin(lhs, trips, 0, 2 * half - 1);
    return exact ? std::optional(lhs) : std::nullopt;
  }
  uint64_t b = uint64_t(rhs->first), t = uint64_t(rhs->step);
  if (isa<arith::AddIOp>(op))
    return wrapping(a + b, s + t);
  if (isa<arith::SubIOp>(op))
    return wrapping(a - b, s - t);
  if (isa<arith::MulIOp>(op) && t == 0)
    return wrapping(a * b, s * b);
  if (isa<arith::MulIOp>(op) && s == 0)
    return wrapping(a * b, a * t);
  return std::nullopt;
}

} // namespace mgpu::planner
