// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls by name. Calls of `check` say what results must be; they are compared
// on the host once results are fetched.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "dialect/spmd/SpmdDialect.h"
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

/// Why a call of an unknown name cannot even be planned; "" where it can.
StringRef whyRefused(CustomCallOp op) {
  StringRef target = op.getCallTargetName();
  if (target.starts_with("xla_") && target.contains("python") &&
      target.ends_with("callback"))
    return "calls back into the program that exported it; export it without";
  if (op.getNumResults() == 0)
    return "gives nothing, so it is called for an effect that is not seen here";
  if (!llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return "takes something else than tensors";
  return "";
}

/// Why a call cannot be the kernel or function that it is given; "" where it
/// can. Both see rows of elements.
StringRef whyNotRun(CustomCallOp op) {
  for (std::optional<ArrayAttr> layouts :
       {op.getOperandLayouts(), op.getResultLayouts()})
    if (layouts)
      for (Attribute each : *layouts) {
        auto order = dyn_cast<DenseIntElementsAttr>(each);
        int64_t next = order ? order.getNumElements() : 0;
        if (!order || llvm::any_of(order.getValues<APInt>(), [&](APInt dim) {
              return dim.getSExtValue() != --next;
            }))
          return "lays tensors out in another order than row by row";
      }
  return "";
}

/// Why it cannot be its kernel, which sees no configuration.
StringRef whyNoKernel(Lowering &low, CustomCallOp op) {
  auto [config, isNew] = low.configs.try_emplace(op.getCallTargetName(),
                                                 op.getBackendConfigAttr());
  if (!isNew && config->second != op.getBackendConfigAttr())
    return "is called with several values of backend_config, which a kernel "
           "does not see";
  constexpr int64_t most = int64_t(256) * INT32_MAX; // CUDA's grids along x
  for (Type type : op->getResultTypes())
    if (cast<ShapedType>(type).getNumElements() > most)
      return "has more elements than a launch has threads";
  return "";
}

/// A call of which nothing is known but its name and what it touches. A result
/// that takes an operand's place begins as that operand.
LogicalResult lowerByName(Lowering &low, CustomCallOp op) {
  StringRef target = op.getCallTargetName();
  if (StringRef why = whyRefused(op); !why.empty())
    return refuse(op) << "'" << target << "' " << why;
  SmallVector<Value> inits =
      llvm::map_to_vector(op.getResults(), [&](Value result) {
        return low.empty(signlessTensor(result));
      });
  SmallVector<int64_t> kept;
  if (auto aliases = op.getOutputOperandAliases())
    for (auto alias : aliases->getAsRange<OutputOperandAliasAttr>()) {
      ArrayRef<int64_t> place = alias.getOutputTupleIndices();
      const int64_t result = place.empty() ? 0 : place[0];
      if (!alias.getOperandTupleIndices().empty() || place.size() > 1 ||
          result < 0 || size_t(result) >= inits.size() ||
          alias.getOperandIndex() < 0 ||
          size_t(alias.getOperandIndex()) >= op.getInputs().size() ||
          llvm::is_contained(kept, result))
        return refuse(op) << "'" << target << "' names operands and results "
                          << "that it does not have as one memory";
      Value operand = low[op.getInputs()[alias.getOperandIndex()]];
      if (operand.getType() != inits[result].getType())
        return refuse(op) << "'" << target << "' has a result of another type "
                          << "than the operand whose place it takes";
      inits[result] = operand;
      kept.push_back(result);
    }
  auto call = spmd::CustomCallOp::create(
      low.b, ValueRange(inits).getTypes(), low.b.getStringAttr(target),
      low.all(op.getInputs()), inits, StringAttr(), StringAttr(),
      kept.empty() ? DenseI64ArrayAttr() : low.b.getDenseI64ArrayAttr(kept),
      op.getBackendConfigAttr(), op.getHasSideEffect(), StringAttr());
  if (auto at = low.customs.find(target); at != low.customs.end()) {
    const bool isKernel = !at->second.entry.empty();
    StringRef why = whyNotRun(op);
    if (why.empty() && isKernel)
      why = whyNoKernel(low, op);
    if (!why.empty())
      return refuse(op) << "'" << target << "' " << why
                        << ", so --custom cannot be its kernel";
    if (isKernel) {
      call.setSource(at->second.file);
      call.setEntry(at->second.entry);
    } else {
      call.setRegistered(StringRef(at->second.file).split(' ').second);
    }
  } else if (low.opaque.insert(target).second) {
    emitWarning(op.getLoc())
        << "nothing says what '" << target
        << "' computes: its time is assumed to be that of the bytes it touches,"
           " unless --cost says it, and it runs with --custom '"
        << target << "=FILE.cu:ENTRY' alone";
  }
  for (auto [result, made] : llvm::zip(op.getResults(), call.getOutputs()))
    low.set(result, low.kept(made, getElementTypeOrSelf(result.getType())));
  return success();
}

/// One half of Threefry-2x32's output, of 20 rounds (Salmon et al., "Parallel
/// random numbers: as easy as 1, 2, 3", 2011, section 4.2).
Value threefry(ImplicitLocOpBuilder &b, ValueRange in, unsigned half) {
  static constexpr unsigned rotations[2][4] = {{13, 15, 26, 6},
                                               {17, 29, 16, 24}};
  auto number = [&](uint32_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(int32_t(value)));
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  auto exclusive = [&](Value x, Value y) -> Value {
    return arith::XOrIOp::create(b, x, y);
  };
  auto rotated = [&](Value x, unsigned by) -> Value {
    return arith::OrIOp::create(b, arith::ShLIOp::create(b, x, number(by)),
                                arith::ShRUIOp::create(b, x, number(32 - by)));
  };
  const Value keys[] = {in[0], in[1],
                        exclusive(exclusive(in[0], in[1]), number(0x1BD11BDA))};
  Value x = add(in[2], keys[0]), y = add(in[3], keys[1]);
  for (unsigned group = 0; group < 5; ++group) {
    for (unsigned by : rotations[group % 2]) {
      x = add(x, y);
      y = exclusive(rotated(y, by), x);
    }
    x = add(x, keys[(group + 1) % 3]);
    y = add(add(y, keys[(group + 2) % 3]), number(group + 1));
  }
  return half == 0 ? x : y;
}

/// Calls of XLA's GPU and processor libraries whose meaning is known.
bool lowerKnown(Lowering &low, CustomCallOp op) {
  StringRef target = op.getCallTargetName();
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  if ((target.starts_with("cu_threefry2x32") ||
       target.starts_with("hip_threefry2x32")) &&
      op.getInputs().size() == 4 && op.getNumResults() == 2 &&
      llvm::all_equal(types) && isa<RankedTensorType>(types[0]) &&
      getElementTypeOrSelf(types[0]).isUnsignedInteger(32)) {
    for (unsigned half : {0, 1})
      low.set(op.getResult(half),
              low.elementwise(
                  signlessTensor(op.getResult(half)), low.all(op.getInputs()),
                  [half](ImplicitLocOpBuilder &b, ValueRange in) {
                    return SmallVector<Value>{threefry(b, in, half)};
                  }));
    return true;
  }
  return false;
}

/// `mhlo.topk` and `TopK`, whose results are those of chlo.top_k.
bool isTopK(CustomCallOp op) {
  StringRef target = op.getCallTargetName();
  if ((target != "mhlo.topk" && target != "TopK" && target != "__gpu$TopK") ||
      op.getInputs().size() != 1 || op.getNumResults() != 2)
    return false;
  auto attributes = op->getAttrOfType<DictionaryAttr>("mhlo.attributes");
  Attribute largest = attributes ? attributes.get("largest") : Attribute();
  auto in = dyn_cast<RankedTensorType>(op.getInputs()[0].getType());
  auto out = dyn_cast<RankedTensorType>(op.getResult(0).getType());
  auto places = dyn_cast<RankedTensorType>(op.getResult(1).getType());
  return (!largest || largest == BoolAttr::get(op.getContext(), true)) && in &&
         out && places && in.getRank() > 0 &&
         in.getElementType() == out.getElementType() &&
         places.getElementType().isInteger(32) &&
         places.getShape() == out.getShape() && in.getRank() == out.getRank() &&
         in.getShape().drop_back() == out.getShape().drop_back() &&
         out.getShape().back() <= in.getShape().back();
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
  if (!low.customs.contains(op.getCallTargetName())) {
    if (isTopK(op))
      return lowerTopK(low, op);
    if (lowerKnown(low, op))
      return success();
  }
  return lowerByName(low, op);
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
