// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/ElementwiseRegion.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;

FailureOr<Value> applied(ImplicitLocOpBuilder &b, Region &region,
                         ValueRange tensors) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(tensors[0].getType()).getShape();
  Block &block = region.front();
  IRMapping map;
  map.map(block.getArguments(), tensors);
  // A scalar of a constant, or from above, is the same for each element.
  auto spread = [&](Value value) {
    if (map.contains(value) || shape.empty())
      return;
    auto type = cast<RankedTensorType>(value.getType()).clone(shape);
    map.map(value, stablehlo::BroadcastInDimOp::create(b, type, value,
                                                       ArrayRef<int64_t>{})
                       .getResult());
  };
  for (Operation &op : block.without_terminator()) {
    bool isElementwise = isa<stablehlo::SelectOp, stablehlo::ClampOp>(op) ||
                         (isa<stablehlo::StablehloDialect>(op.getDialect()) &&
                          op.hasTrait<OpTrait::SameOperandsAndResultShape>() &&
                          op.getNumRegions() == 0);
    if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
      Value scalar = b.clone(op)->getResult(0);
      spread(scalar);
      map.map(constant.getResult(), map.lookupOrDefault(scalar));
      continue;
    }
    if (!isElementwise)
      return ir::emitUnsupported(&op)
             << "stands in the region of '" << region.getParentOp()->getName()
             << "', which may have elementwise operations alone";
    for (Value operand : op.getOperands())
      spread(operand);
    Operation *copy = b.clone(op, map);
    for (Value result : copy->getResults())
      result.setType(cast<RankedTensorType>(result.getType()).clone(shape));
  }
  Value result = block.back().getOperand(0);
  spread(result);
  return map.lookupOrDefault(result);
}

} // namespace mgpu::conversion
