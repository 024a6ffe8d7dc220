// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/stablehlo/HostNumbers.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

HostNumbers::HostNumbers(const Lowering &low, WhileOp loop) : low(low) {
  kept = keptOf(loop, llvm::map_to_vector(loop.getOperand(), [&](Value init) {
                  return bool(low.number(init)) && isHostInteger(init);
                }));
  isDecided = isNumber(loop.getCond().front().getTerminator()->getOperand(0));
}

bool HostNumbers::isNumber(Value value) {
  if (auto at = known.find(value); at != known.end())
    return at->second;
  if (!isHostInteger(value))
    return false;
  if (low.number(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto loop = dyn_cast<WhileOp>(op)) {
    SmallVector<bool> inner =
        keptOf(loop, llvm::map_to_vector(loop.getOperand(), [&](Value init) {
                 return isNumber(init);
               }));
    for (auto [result, isKept] : llvm::zip(loop.getResults(), inner))
      known[result] = isKept;
    return known[value];
  }
  if (splatOf(op))
    return true;
  return (isScalarIdentity(op) || findScalarBuilder(op->getName())) &&
         op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return isNumber(operand); });
}

/// Takes what the body makes of a number another way out, until no more does.
SmallVector<bool> HostNumbers::keptOf(WhileOp loop, SmallVector<bool> kept) {
  Block &body = loop.getBody().front();
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    for (auto [k, isKept] : llvm::enumerate(kept)) {
      known[body.getArgument(k)] = isKept;
      known[loop.getCond().front().getArgument(k)] = isKept;
    }
    for (auto [k, next] :
         llvm::enumerate(body.getTerminator()->getOperands())) {
      if (!kept[k] || isNumber(next))
        continue;
      kept[k] = false;
      isChanged = true;
    }
    if (isChanged) // what was found out rests on arguments that change
      body.walk([&](WhileOp inner) {
        for (Value result : inner.getResults())
          known.erase(result);
      });
  }
  return kept;
}

} // namespace mgpu::conversion
