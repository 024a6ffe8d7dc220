// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/linalg/PointLaunch.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/IR/IRMapping.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTATTENTIONTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// Builds a launch with a thread for each query. The body is what targets
/// without a form of their own run: the largest score, then for each key its
/// power, times its value.
class AttentionBuilder {
public:
  AttentionBuilder(spmd::AttentionOp op, Value device)
      : op(op), of(op.getOf()), loc(op.getLoc()),
        launch(op, device, {of.getBatchSize(), of.getQueries()}),
        b(launch.body()), f32(b.getF32Type()) {}
  ir::LaunchOp build();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value real(const APFloat &value) {
    return arith::ConstantOp::create(b, loc, b.getFloatAttr(f32, value));
  }
  /// The number as an f32, or as a narrower type.
  Value as(Type type, Value number);
  Value place(AffineMap map, unsigned result);
  SmallVector<Value> placesOf(AffineMap map);
  Value element(unsigned operand) {
    AffineMap map =
        operand < 3
            ? of.getMap(operand)
            : cast<AffineMapAttr>(op.getExtras()[operand - 3]).getValue();
    return memref::LoadOp::create(b, loc, op.getInputs()[operand],
                                  placesOf(map));
  }
  /// The score of the query and a key.
  Value score(Value key);
  SmallVector<Value> each(int64_t count, ValueRange carried,
                          function_ref<SmallVector<Value>(Value, ValueRange)>);

  spmd::AttentionOp op;
  ir::AttentionAttr of;
  Location loc;
  PointLaunch launch;
  OpBuilder &b;
  Type f32;
  SmallVector<Value> at; ///< the indices of `of`
};

Value AttentionBuilder::as(Type type, Value number) {
  const unsigned from = number.getType().getIntOrFloatBitWidth(),
                 to = type.getIntOrFloatBitWidth();
  if (number.getType() == type)
    return number;
  return from < to ? arith::ExtFOp::create(b, loc, type, number).getResult()
                   : arith::TruncFOp::create(b, loc, type, number).getResult();
}

SmallVector<Value> AttentionBuilder::placesOf(AffineMap map) {
  SmallVector<Value> places;
  for (AffineExpr expression : map.getResults())
    places.push_back(affine::expandAffineExpr(b, loc, expression, at, {}));
  return places;
}

SmallVector<Value> AttentionBuilder::each(
    int64_t count, ValueRange carried,
    function_ref<SmallVector<Value>(Value, ValueRange)> make) {
  return makeLoop(b, loc, count, carried,
                  [&](OpBuilder &inner, Value counter, ValueRange values) {
                    OpBuilder::InsertionGuard guard(b);
                    b.setInsertionPoint(inner.getInsertionBlock(),
                                        inner.getInsertionPoint());
                    SmallVector<Value> next = make(counter, values);
                    inner.setInsertionPointToEnd(b.getInsertionBlock());
                    return next;
                  });
}

Value AttentionBuilder::score(Value key) {
  const size_t keyAt = of.getBatch().size() + 1;
  at[keyAt] = key;
  Value zero = real(APFloat(0.0f));
  Value sum = each(of.getHead(), zero, [&](Value d, ValueRange sums) {
    at[keyAt + 1] = d;
    Value x = as(f32, element(0)), y = as(f32, element(1));
    return SmallVector<Value>{math::FmaOp::create(b, loc, x, y, sums[0])};
  })[0];
  IRMapping map;
  Block &body = op.getBody().front();
  SmallVector<Value> given{as(body.getArgument(0).getType(), sum)};
  for (unsigned k = 3; k < op.getInputs().size(); ++k)
    given.push_back(element(k));
  given.append(at.begin(), at.begin() + keyAt + 1);
  map.map(body.getArguments(), given);
  for (Operation &each : body.without_terminator())
    b.clone(each, map);
  return as(f32, map.lookupOrDefault(body.getTerminator()->getOperand(0)));
}

ir::LaunchOp AttentionBuilder::build() {
  Value lowest = real(APFloat::getInf(APFloat::IEEEsingle(), true)),
        zero = real(APFloat(0.0f));
  Value rest = launch.point[0];
  for (int64_t size : llvm::reverse(of.getBatch())) {
    Value unit = index(size);
    at.insert(at.begin(), arith::RemUIOp::create(b, loc, rest, unit));
    rest = arith::DivUIOp::create(b, loc, rest, unit);
  }
  at.push_back(launch.point[1]);
  at.resize(at.size() + 3);
  const size_t valueAt = at.size() - 1;
  for (auto [mark, id] :
       llvm::zip(ir::globalMarks, llvm::reverse(launch.point)))
    ir::setMark(id.getDefiningOp(), mark);
  Value most = each(of.getKeys(), lowest, [&](Value key, ValueRange now) {
    Value next = score(key);
    return SmallVector<Value>{arith::MaxNumFOp::create(b, loc, now[0], next)};
  })[0];
  // Without a score there is nothing to subtract, and each power is 0.
  Value isNone =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, most, lowest);
  most = arith::SelectOp::create(b, loc, isNone, zero, most);
  Value sums =
      memref::AllocaOp::create(b, loc, MemRefType::get({of.getValue()}, f32));
  each(of.getValue(), {}, [&](Value v, ValueRange) {
    memref::StoreOp::create(b, loc, zero, sums, v);
    return SmallVector<Value>();
  });
  Value total = each(of.getKeys(), zero, [&](Value key, ValueRange now) {
    Value power = math::ExpOp::create(
        b, loc, arith::SubFOp::create(b, loc, score(key), most));
    each(of.getValue(), {}, [&](Value v, ValueRange) {
      at[valueAt] = v;
      Value sum = memref::LoadOp::create(b, loc, sums, v);
      sum = math::FmaOp::create(b, loc, power, as(f32, element(2)), sum);
      memref::StoreOp::create(b, loc, sum, sums, v);
      return SmallVector<Value>();
    });
    return SmallVector<Value>{arith::AddFOp::create(b, loc, now[0], power)};
  })[0];
  isNone =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, total, zero);
  each(of.getValue(), {}, [&](Value v, ValueRange) {
    at[valueAt] = v;
    Value sum = memref::LoadOp::create(b, loc, sums, v);
    sum = arith::SelectOp::create(b, loc, isNone, zero,
                                  arith::DivFOp::create(b, loc, sum, total));
    memref::StoreOp::create(
        b, loc,
        as(cast<MemRefType>(op.getInit().getType()).getElementType(), sum),
        op.getInit(), placesOf(of.getMap(3)));
    return SmallVector<Value>();
  });
  ir::LaunchOp made = launch.launch;
  made->setAttr(ir::attentionName, of);
  made.getArgsMutable().assign(ValueRange{op.getInputs()[0], op.getInputs()[1],
                                          op.getInputs()[2], op.getInit()});
  return made;
}

struct ConvertAttentionToMgpu
    : impl::ConvertAttentionToMgpuBase<ConvertAttentionToMgpu> {
  using ConvertAttentionToMgpuBase::ConvertAttentionToMgpuBase;

  void runOnOperation() override {
    SmallVector<spmd::AttentionOp> all;
    ir::walkHostCode(getOperation(), entry, [&](Operation *op) {
      if (auto attention = dyn_cast<spmd::AttentionOp>(op))
        all.push_back(attention);
    });
    for (spmd::AttentionOp op : all) {
      FailureOr<Value> device = ir::deviceOfAll(op, op->getOperands());
      if (failed(device))
        return signalPassFailure();
      AttentionBuilder(op, *device).build();
      op->erase();
    }
    if (all.empty())
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
