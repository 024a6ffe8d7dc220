// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/AttentionParts.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mgpu::kernels {

/// The axis of the ids that the operation gives.
static std::optional<unsigned> axisOf(Operation *op) {
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
    return unsigned(id.getDimension());
  for (auto [axis, mark] : llvm::enumerate(ir::globalMarks))
    if (ir::hasMark(op, mark))
      return unsigned(axis);
  return std::nullopt;
}

/// Whether the score is made of ids, arguments and the product by operations of
/// numbers. Finds the loop that adds up the product.
static bool findHead(Value value, AttentionBody &body,
                     llvm::DenseSet<Value> &seen) {
  if (value == body.keys.getInductionVar() || !seen.insert(value).second)
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return isa<MemRefType>(value.getType()) ||
           isa<func::FuncOp>(value.getParentBlock()->getParentOp());
  if (axisOf(op))
    return true;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    const bool isFirst = !body.head || body.head == loop;
    body.head = loop;
    return isFirst && loop.getNumResults() == 1;
  }
  if (op->getNumRegions() != 0 || isa<gpu::GPUDialect>(op->getDialect()) ||
      (!isMemoryEffectFree(op) && !isa<memref::LoadOp>(op)))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    return findHead(operand, body, seen);
  });
}

std::optional<AttentionBody> attentionForm(ModuleOp kernel) {
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration())
    return std::nullopt;
  AttentionBody body{ir::attentionOf(entry), {}, {}, {}};
  if (!body.of || body.of.getOperands().empty())
    return std::nullopt;
  for (Type type : entry.getArgumentTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (memref &&
        (!memref.hasStaticShape() ||
         failed(memref.getStridesAndOffset(strides, offset)) ||
         llvm::any_of(strides, [](int64_t each) { return each < 0; }) ||
         ShapedType::isDynamic(offset)))
      return std::nullopt;
  }
  entry.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    auto most =
        loop.getNumResults() == 1
            ? loop.getYieldedValues()[0].getDefiningOp<arith::MaxNumFOp>()
            : arith::MaxNumFOp();
    if (!most || (most.getLhs() != loop.getRegionIterArg(0) &&
                  most.getRhs() != loop.getRegionIterArg(0)))
      return WalkResult::advance();
    body.keys = loop;
    body.score = most.getLhs() == loop.getRegionIterArg(0) ? most.getRhs()
                                                           : most.getLhs();
    return WalkResult::interrupt();
  });
  llvm::DenseSet<Value> seen;
  if (!body.keys || !findHead(body.score, body, seen) || !body.head)
    return std::nullopt;
  return body;
}

Value copyScore(OpBuilder &b, AttentionBody body, IRMapping &map,
                ValueRange ids) {
  auto copy = [&](auto &self, Value value) -> void {
    if (map.contains(value))
      return;
    Operation *op = value.getDefiningOp();
    if (std::optional<unsigned> axis = axisOf(op))
      return map.map(value, ids[*axis]);
    for (Value operand : op->getOperands())
      self(self, operand);
    b.clone(*op, map);
  };
  copy(copy, body.score);
  return map.lookup(body.score);
}

OwningOpRef<ModuleOp> scoreFunction(AttentionBody body) {
  auto entry = body.keys->getParentOfType<func::FuncOp>();
  Location loc = body.keys.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder b(module->getBodyRegion());
  SmallVector<Type> types(entry.getArgumentTypes());
  types.push_back(body.head.getResult(0).getType());
  auto part = func::FuncOp::create(b, loc, "attention.score",
                                   b.getFunctionType(types, b.getF32Type()));
  SmallVector<Location> locations;
  for (BlockArgument argument : entry.getArguments())
    locations.push_back(argument.getLoc());
  locations.push_back(NameLoc::get(b.getStringAttr("product"), loc));
  b.setInsertionPointToStart(&part.getBody().emplaceBlock());
  Block &block = part.getBody().front();
  block.addArguments(types, locations);
  IRMapping map;
  for (BlockArgument argument : entry.getArguments())
    map.map(argument, block.getArgument(argument.getArgNumber()));
  map.map(body.head.getResult(0), block.getArguments().back());
  SmallVector<Value> ids;
  for (auto axis : {gpu::Dimension::x, gpu::Dimension::y, gpu::Dimension::z})
    ids.push_back(gpu::GlobalIdOp::create(b, loc, axis));
  map.map(body.keys.getInductionVar(), ids.back());
  func::ReturnOp::create(b, loc, copyScore(b, body, map, ids));
  return module;
}

SmallVector<int64_t> attentionStrides(AttentionBody body, unsigned k) {
  auto entry = body.keys->getParentOfType<func::FuncOp>();
  auto type = cast<MemRefType>(
      entry.getArgumentTypes()[unsigned(body.of.getOperands()[k])]);
  const AffineMap map = body.of.getMap(k);
  SmallVector<int64_t> strides, all(map.getNumDims() + 1);
  int64_t offset = 0;
  (void)type.getStridesAndOffset(strides, offset);
  const SmallVector<int64_t> zeros(map.getNumDims());
  const SmallVector<int64_t> origin = map.compose(zeros);
  all.back() = offset;
  for (auto [place, stride] : llvm::zip_equal(origin, strides))
    all.back() += place * stride;
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim) {
    SmallVector<int64_t> one(map.getNumDims());
    one[dim] = 1;
    for (auto [place, from, stride] :
         llvm::zip_equal(map.compose(one), origin, strides))
      all[dim] += (place - from) * stride;
  }
  return all;
}

} // namespace mgpu::kernels
