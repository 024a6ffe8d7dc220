// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reductions of whole dimensions, and maps.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

static LogicalResult lowerReduce(Lowering &low, ReduceOp op) {
  if (failed(checkScalars(op.getBody())))
    return failure();
  auto from = cast<RankedTensorType>(op.getInputs()[0].getType());
  ArrayRef<int64_t> dimensions = op.getDimensions();
  Generic of;
  of.inputs = low.all(op.getInputs());
  unsigned kept = from.getRank() - dimensions.size();
  of.parallel = kept;
  of.reduction = dimensions.size();
  // The points: dimensions that stay, then those that are reduced.
  SmallVector<AffineExpr> places(from.getRank()), out;
  unsigned nextKept = 0, nextReduced = kept;
  for (int64_t k = 0; k < from.getRank(); ++k)
    places[k] =
        low.dim(llvm::is_contained(dimensions, k) ? nextReduced++ : nextKept++);
  for (unsigned k = 0; k < kept; ++k)
    out.push_back(low.dim(k));
  MLIRContext *context = low.b.getContext();
  of.maps.append(of.inputs.size(),
                 AffineMap::get(from.getRank(), 0, places, context));
  of.maps.append(of.inputs.size(),
                 AffineMap::get(from.getRank(), 0, out, context));
  for (auto [init, result] : llvm::zip(op.getInitValues(), op.getResults()))
    of.inits.push_back(low.filled(signlessTensor(result), init));
  size_t count = of.inputs.size();
  auto combine = [&](ImplicitLocOpBuilder &b, ValueRange elements) {
    SmallVector<Value> arguments = llvm::to_vector(elements.drop_front(count));
    llvm::append_range(arguments, elements.take_front(count));
    return low.inlined(b, op.getBody(), arguments);
  };
  low.setAll(op.getResults(), low.generic(of, combine));
  return success();
}

static LogicalResult lowerMap(Lowering &low, MapOp op) {
  if (failed(checkScalars(op.getComputation())))
    return failure();
  low.set(op.getResult(),
          low.elementwise(signlessTensor(op.getResult()),
                          low.all(op.getInputs()),
                          [&](ImplicitLocOpBuilder &b, ValueRange in) {
                            return low.inlined(b, op.getComputation(), in);
                          }));
  return success();
}

ArrayRef<NamedFamily> reductionFamily() {
  static const NamedFamily all[] = {
      family<ReduceOp, lowerReduce>(),
      family<MapOp, lowerMap>(),
  };
  return all;
}

} // namespace mgpu::conversion
