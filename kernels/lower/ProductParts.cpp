// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/ProductParts.h"

#include "facts/KernelProduct.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace mgpu::kernels {

ir::ProductAttr productOf(ModuleOp kernel) {
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration() || !ir::productOf(entry))
    return {};
  const ir::ProductAttr product = ir::productOf(entry);
  scf::ForOp loop = facts::productLoop(entry.getBody());
  return (loop ? bool(splitProduct(loop)) : product.hasC()) ? product
                                                            : ir::ProductAttr();
}

namespace {

/// Copies operations of the entry into one function, with what they need.
class PartBuilder {
public:
  PartBuilder(func::FuncOp entry, func::FuncOp part)
      : entry(entry),
        b(&part.getBody().front(), part.getBody().front().begin()) {
    for (BlockArgument argument : entry.getArguments())
      map.map(argument, part.getArgument(argument.getArgNumber()));
  }
  /// False where that cannot be.
  bool copy(Operation *op);
  bool need(Value value);

  func::FuncOp entry;
  OpBuilder b;
  IRMapping map;
};

bool PartBuilder::copy(Operation *op) {
  bool isForeign = op->walk([](Operation *inner) {
                       return isa<gpu::GPUDialect>(inner->getDialect()) ||
                                      isa<func::CallOp>(inner)
                                  ? WalkResult::interrupt()
                                  : WalkResult::advance();
                     }).wasInterrupted();
  if (isForeign)
    return false;
  SmallVector<Value> needed(op->getOperands());
  llvm::SetVector<Value> above;
  getUsedValuesDefinedAbove(op->getRegions(), above);
  needed.append(above.begin(), above.end());
  for (Value value : needed)
    if (!need(value))
      return false;
  b.clone(*op, map);
  return true;
}

bool PartBuilder::need(Value value) {
  if (map.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  std::optional<gpu::Dimension> axis;
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
    axis = id.getDimension();
  for (auto [k, mark] : llvm::enumerate(ir::globalMarks))
    if (ir::hasMark(op, mark))
      axis = gpu::Dimension(k);
  if (axis) {
    map.map(value, Value(gpu::GlobalIdOp::create(b, op->getLoc(), *axis)));
    return true;
  }
  // A scalar that the kernel is given in memory, which it does not write.
  auto load = dyn_cast<memref::LoadOp>(op);
  bool isParameter = load && load.getMemRefType().getRank() == 0 &&
                     isa<BlockArgument>(load.getMemRef()) &&
                     op->getBlock() == &entry.getBody().front();
  return (isParameter || isMemoryEffectFree(op)) && copy(op);
}

bool hasStaticArguments(func::FuncOp entry) {
  return llvm::all_of(entry.getArgumentTypes(), [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    return !memref || (memref.hasStaticShape() &&
                       succeeded(memref.getStridesAndOffset(strides, offset)) &&
                       !ShapedType::isDynamic(offset) &&
                       !llvm::is_contained(strides, ShapedType::kDynamic));
  });
}

} // namespace

OwningOpRef<ModuleOp> splitProduct(scf::ForOp loop) {
  auto entry = loop->getParentOfType<func::FuncOp>();
  if (loop.getNumResults() != 1 || !hasStaticArguments(entry))
    return {};
  Location loc = loop.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder outside(module->getBodyRegion());
  Type sum = loop.getResult(0).getType();
  auto begin = [&](StringRef name, bool takesSum) {
    SmallVector<Type> types(entry.getArgumentTypes()), results;
    (takesSum ? types : results).push_back(sum);
    auto part = func::FuncOp::create(outside, loc, name,
                                     outside.getFunctionType(types, results));
    SmallVector<Location> locations;
    for (BlockArgument argument : entry.getArguments())
      locations.push_back(argument.getLoc());
    if (takesSum)
      locations.push_back(NameLoc::get(outside.getStringAttr("sum"), loc));
    part.getBody().emplaceBlock().addArguments(types, locations);
    return part;
  };
  // An operation without an effect is copied where it is needed, once.
  PartBuilder first(entry, begin("product.first", false)),
      last(entry, begin("product.last", true));
  last.map.map(loop.getResult(0),
               last.b.getInsertionBlock()->getArguments().back());
  PartBuilder *part = &first;
  for (Operation &op : loop->getBlock()->without_terminator()) {
    if (&op == loop)
      part = &last;
    else if (!isMemoryEffectFree(&op) && !part->map.contains(&op) &&
             !op.hasAttr(ir::markName) && !part->copy(&op))
      return {};
  }
  if (!first.need(loop.getInitArgs()[0]))
    return {};
  func::ReturnOp::create(first.b, loc, first.map.lookup(loop.getInitArgs()[0]));
  func::ReturnOp::create(last.b, loc);
  return module;
}

bool goesBack(func::FuncOp entry) {
  return llvm::any_of(entry.getArgumentTypes(), [](Type type) {
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    auto memref = dyn_cast<MemRefType>(type);
    return memref && succeeded(memref.getStridesAndOffset(strides, offset)) &&
           llvm::any_of(strides, [](int64_t stride) { return stride < 0; });
  });
}

} // namespace mgpu::kernels
