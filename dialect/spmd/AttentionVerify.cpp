// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/spmd/SpmdDialect.h"

using namespace mlir;
using namespace mgpu::spmd;
using mgpu::ir::rule;

/// Whether all elements that the map names are in a buffer of that type.
static bool isInside(ShapedType type, AffineMap map, ArrayRef<int64_t> sizes) {
  if (!type.hasStaticShape() || int64_t(map.getNumResults()) != type.getRank())
    return false;
  MLIRContext *context = map.getContext();
  for (auto [index, extent] :
       llvm::zip_equal(map.getResults(), type.getShape())) {
    // Linear: the least and the largest are at ends of the dimensions.
    AffineExpr least = index, most = index;
    for (auto [dim, size] : llvm::enumerate(sizes)) {
      auto at = [&](AffineExpr in, int64_t value) {
        return in.replace(getAffineDimExpr(unsigned(dim), context),
                          getAffineConstantExpr(value, context));
      };
      AffineExpr low = at(most, 0), high = at(most, size - 1);
      auto slope = dyn_cast<AffineConstantExpr>(
          simplifyAffineExpr(high - low, map.getNumDims(), 0));
      if (!slope)
        return false;
      most = slope.getValue() < 0 ? low : high;
      least = at(least, slope.getValue() < 0 ? size - 1 : 0);
    }
    auto low = dyn_cast<AffineConstantExpr>(least),
         high = dyn_cast<AffineConstantExpr>(most);
    if (!low || !high || low.getValue() < 0 || high.getValue() >= extent)
      return false;
  }
  return true;
}

LogicalResult AttentionOp::verify() {
  SmallVector<int64_t> sizes(getOf().getBatch());
  const size_t batch = sizes.size();
  sizes.append({getOf().getQueries(), getOf().getKeys(), getOf().getHead(),
                getOf().getValue()});
  SmallVector<AffineMap> maps;
  for (Attribute each : getOf().getMaps())
    maps.push_back(cast<AffineMapAttr>(each).getValue());
  AffineMap ofInit = maps.pop_back_val();
  for (Attribute each : getExtras())
    maps.push_back(cast<AffineMapAttr>(each).getValue());
  if (getInputs().size() != maps.size())
    return emitOpError() << "has " << getInputs().size() << " inputs and "
                         << maps.size() << " maps of inputs" << rule(*this, 1);
  SmallVector<Type> types;
  for (auto [input, map] : llvm::zip_equal(getInputs(), maps)) {
    if (map.getNumDims() != sizes.size() || map.getNumSymbols() != 0)
      return emitOpError() << "has a map of " << map.getNumDims()
                           << " indices; an attention has " << sizes.size()
                           << rule(*this, 1);
    types.push_back(getElementTypeOrSelf(input));
  }
  Block &body = getBody().front();
  auto end = dyn_cast_or_null<ScoreOp>(body.empty() ? nullptr : &body.back());
  const size_t extras = maps.size() - 3, indices = batch + 2;
  bool fits = end && body.getNumArguments() == 1 + extras + indices &&
              isa<FloatType>(body.getArgument(0).getType());
  for (auto [k, argument] : llvm::enumerate(body.getArguments()))
    if (fits && k > 0)
      fits = argument.getType() ==
             (k <= extras ? types[k + 2] : Builder(*this).getIndexType());
  if (!fits || !isa<FloatType>(types[0]) || !isa<FloatType>(types[1]) ||
      !isa<FloatType>(types[2]) ||
      !isa<FloatType>(getElementTypeOrSelf(getInit())))
    return emitOpError() << "has a body of other numbers than a product, "
                         << extras << " further elements and " << indices
                         << " indices" << rule(*this, 2);
  SmallVector<Value> shaped(getInputs());
  shaped.push_back(getInit());
  maps.push_back(ofInit);
  for (auto [value, map] : llvm::zip_equal(shaped, maps))
    if (!isInside(cast<ShapedType>(value.getType()), map, sizes))
      return emitOpError() << "reads or writes elements that "
                           << value.getType() << " does not have"
                           << rule(*this, 3);
  return success();
}
