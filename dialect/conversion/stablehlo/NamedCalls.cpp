// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls by name. Calls of `check` say what results must be; they are compared
// on the host once results are fetched.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/stablehlo/StablehloDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::conversion {

using namespace mlir;
using namespace mgpu::stablehlo;

namespace {

/// `check.expect_close` allows 3 units in the last place and
/// `check.expect_almost_eq` a difference of 0.0001, unless they say otherwise.
LogicalResult expect(Lowering &low, Operation *op, StringRef how,
                     DictionaryAttr options, Value expected) {
  if (!isa<func::FuncOp>(op->getParentOp()))
    return refuse(op) << "stands in a loop or branch; what results must be is "
                         "compared after the run";
  SmallVector<NamedAttribute> said;
  auto say = [&](StringRef name, Attribute value) {
    said.push_back({StringAttr::get(op->getContext(), name), value});
  };
  auto given = [&](StringRef name, Attribute otherwise) {
    Attribute own = options ? options.get(name) : Attribute();
    return own ? own : otherwise;
  };
  say("at", low.b.getStringAttr(ir::describeLocation(op->getLoc())));
  say("how", low.b.getStringAttr(how));
  if (how == "close")
    say("ulps", given("max_ulp_difference", low.b.getI64IntegerAttr(3)));
  if (how == "almost_eq")
    say("tolerance", given("tolerance", low.b.getF64FloatAttr(1e-4)));
  low.expectations.push_back(
      {low[op->getOperand(0)], expected, low.b.getDictionaryAttr(said)});
  return success();
}

/// Whether two tensors have the same elements, as a tensor of rank 0.
Value areEqual(Lowering &low, CustomCallOp op) {
  Value lhs = low[op.getInputs()[0]], rhs = low[op.getInputs()[1]];
  auto type = cast<RankedTensorType>(lhs.getType());
  unsigned rank = type.getRank();
  auto flag = RankedTensorType::get({}, low.b.getI1Type());
  Value yes = arith::ConstantOp::create(low.b, low.b.getBoolAttr(true));
  Generic of;
  of.inputs = {lhs, rhs};
  of.inits = {low.filledWith(flag, yes)};
  of.reduction = rank;
  of.maps.append(2, low.b.getMultiDimIdentityMap(rank));
  of.maps.push_back(AffineMap::get(rank, 0, low.b.getContext()));
  return low.generic(of, [](ImplicitLocOpBuilder &b, ValueRange in) {
    Value same =
        isa<FloatType>(in[0].getType())
            ? arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, in[0], in[1])
                  .getResult()
            : arith::CmpIOp::create(b, arith::CmpIPredicate::eq, in[0], in[1])
                  .getResult();
    return SmallVector<Value>{arith::AndIOp::create(b, in[2], same)};
  })[0];
}

LogicalResult lowerCustomCall(Lowering &low, CustomCallOp op) {
  StringRef target = op.getCallTargetName();
  bool isPair = op.getInputs().size() == 2 &&
                op.getInputs()[0].getType() == op.getInputs()[1].getType();
  if (isPair && target == "check.eq" && op.getNumResults() == 1) {
    low.set(op.getResult(0), areEqual(low, op));
    return expect(low, op, "eq", {}, low[op.getInputs()[1]]);
  }
  auto options = op.getBackendConfig()
                     ? dyn_cast<DictionaryAttr>(*op.getBackendConfig())
                     : DictionaryAttr();
  if (isPair && target.consume_front("check.expect_") &&
      (target == "eq" || target == "close" || target == "almost_eq"))
    return expect(low, op, target, options, low[op.getInputs()[1]]);
  return refuse(op) << "calls '" << op.getCallTargetName()
                    << "', which this version does not know; export the "
                       "program without it (docs/limits.md)";
}

/// Operations of the check dialect.
LogicalResult lowerExpect(Lowering &low, Operation *op) {
  StringRef how = op->getName().stripDialect();
  how.consume_front("expect_");
  DictionaryAttr options = op->getAttrDictionary();
  if (!how.consume_back("_const"))
    return expect(low, op, how, options, low[op->getOperand(1)]);
  TypedAttr elements =
      signlessElements(op->getAttrOfType<ElementsAttr>("value"));
  if (!elements)
    return refuse(op) << "has elements that are not in the file";
  return expect(low, op, how, options,
                arith::ConstantOp::create(low.b, elements));
}

} // namespace

ArrayRef<NamedFamily> callFamily() {
  static const NamedFamily all[] = {
      family<CustomCallOp, lowerCustomCall>(),
      {"check.expect_eq", lowerExpect},
      {"check.expect_eq_const", lowerExpect},
      {"check.expect_close", lowerExpect},
      {"check.expect_almost_eq", lowerExpect},
      {"check.expect_almost_eq_const", lowerExpect},
  };
  return all;
}

} // namespace mgpu::conversion
