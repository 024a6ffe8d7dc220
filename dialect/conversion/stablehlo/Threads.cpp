// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kernels whose threads run through loops of their own.
#include "dialect/conversion/stablehlo/Lowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::conversion {

using namespace mlir;

SmallVector<Value>
Lowering::inThreads(int64_t count, ValueRange inits,
                    llvm::function_ref<ThreadPart(Value)> partOf,
                    llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  auto inside = [&](OpBuilder &nested, llvm::function_ref<void()> build) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(nested.getInsertionBlock(), nested.getInsertionPoint());
    build();
  };
  // A loop of one thread would be folded into host code, which cannot read
  // tensors: so there are two at least, and one may have nothing to do.
  auto guarded = [&](Value thread, ValueRange parts) {
    if (count > 1)
      return body(parts);
    Value isFirst =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, index(0));
    auto branch = scf::IfOp::create(
        b, isFirst,
        [&](OpBuilder &nested, Location) {
          inside(nested, [&] { scf::YieldOp::create(b, body(parts)); });
        },
        [&](OpBuilder &nested, Location at) {
          scf::YieldOp::create(nested, at, parts);
        });
    return SmallVector<Value>(branch.getResults());
  };
  auto makeThread = [&](ValueRange arguments) {
    ThreadPart own = partOf(arguments[0]);
    SmallVector<OpFoldResult> ones(own.offsets.size(), b.getIndexAttr(1));
    SmallVector<Value> parts;
    for (Value out : arguments.drop_front())
      parts.push_back(
          tensor::ExtractSliceOp::create(b, out, own.offsets, own.sizes, ones));
    SmallVector<Value> results = guarded(arguments[0], parts);
    auto end = scf::InParallelOp::create(b);
    b.setInsertionPointToStart(end.getBody());
    for (auto [result, out] : llvm::zip(results, arguments.drop_front()))
      tensor::ParallelInsertSliceOp::create(b, result, out, own.offsets,
                                            own.sizes, ones);
  };
  SmallVector<OpFoldResult> bounds{b.getIndexAttr(std::max<int64_t>(count, 2))};
  auto loop = scf::ForallOp::create(
      b, bounds, inits, std::nullopt,
      [&](OpBuilder &nested, Location, ValueRange arguments) {
        inside(nested, [&] { makeThread(arguments); });
      });
  return SmallVector<Value>(loop.getResults());
}

} // namespace mgpu::conversion
