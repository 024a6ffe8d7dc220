// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/GpuLaunch.h"

#include "planner/import/PointLaunch.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::planner {

using namespace mlir;

namespace {

/// What both kinds of launches say alike.
struct Shape {
  SmallVector<Value> grid, block;
  Value dynamicSharedBytes;
};

SmallVector<Value> sizesOf(const gpu::KernelDim3 &sizes) {
  return {sizes.x, sizes.y, sizes.z};
}

template <typename Launch>
Shape shapeOf(Launch op) {
  return {sizesOf(op.getGridSizeOperandValues()),
          sizesOf(op.getBlockSizeOperandValues()),
          op.getDynamicSharedMemorySize()};
}

bool hasClusters(Operation *op) {
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<gpu::LaunchFuncOp, gpu::LaunchOp>(
          [](auto each) { return each.hasClusterSize(); })
      .Default(false);
}

/// Leaves the op for the importer to refuse, which says why.
LogicalResult refuse(Operation *op, const Twine &why) {
  op->setAttr(refusedAttr, StringAttr::get(op->getContext(), why));
  return success();
}

/// An mgpu.launch in the place of `op`, with the operations of `body`, whose
/// arguments are: `known` ones, workgroup memory, private memory.
LogicalResult launch(Operation *op, const Shape &shape, StringRef name,
                     Region &body, ValueRange known,
                     ArrayRef<BlockArgument> workgroup,
                     ArrayRef<BlockArgument> privates) {
  if (!body.hasOneBlock())
    return refuse(op, "has a kernel with branches between blocks of "
                      "operations; write them with scf.if, scf.while");
  for (BlockArgument argument :
       llvm::concat<const BlockArgument>(workgroup, privates)) {
    auto type = cast<MemRefType>(argument.getType());
    if (!type.hasStaticShape() || !type.getLayout().isIdentity())
      return refuse(op, "has memory of its own without a static size and the "
                        "default layout");
  }
  for (BlockArgument argument : workgroup)
    if (!gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
            cast<MemRefType>(argument.getType())))
      return refuse(op, "has workgroup memory of another space than "
                        "#gpu.address_space<workgroup>: give it that");
  for (BlockArgument argument : privates)
    if (auto space = cast<MemRefType>(argument.getType()).getMemorySpace();
        space && !isa<gpu::AddressSpaceAttr>(space))
      return refuse(op, "has private memory of another space than "
                        "#gpu.address_space<private>: give it that");
  FailureOr<Value> device = deviceOfAll(op, memrefsOf(op));
  if (failed(device))
    return failure();
  OpBuilder b(op);
  SmallVector<Type> workgroupTypes;
  for (BlockArgument argument : workgroup)
    workgroupTypes.push_back(argument.getType());
  auto made = ir::LaunchOp::create(b, op->getLoc(), *device, shape.grid,
                                   shape.block, Value(), ValueRange(),
                                   workgroupTypes, shape.dynamicSharedBytes);
  made->setAttr("mgpu.name", b.getStringAttr(name));
  IRMapping map;
  Block &from = body.front(), &to = made.getBody().front();
  b.setInsertionPoint(to.getTerminator());
  if (isa<gpu::LaunchOp>(op)) { // ids and sizes, x, y and z of each
    auto id = [&]<typename Op>(unsigned first) {
      for (unsigned axis = 0; axis < 3; ++axis)
        map.map(from.getArgument(first + axis),
                Op::create(b, op->getLoc(), gpu::Dimension(axis)).getResult());
    };
    id.operator()<gpu::BlockIdOp>(0);
    id.operator()<gpu::ThreadIdOp>(3);
    id.operator()<gpu::GridDimOp>(6);
    id.operator()<gpu::BlockDimOp>(9);
  }
  for (auto [k, value] : llvm::enumerate(known))
    map.map(from.getArgument(unsigned(k)), value);
  for (auto [argument, buffer] :
       llvm::zip_equal(workgroup, made.getWorkgroupBuffers()))
    map.map(argument, buffer);
  for (BlockArgument argument : privates)
    map.map(argument,
            memref::AllocaOp::create(b, argument.getLoc(),
                                     cast<MemRefType>(argument.getType()))
                .getResult());
  for (Operation &each : from.without_terminator())
    b.clone(each, map);
  return verify(made);
}

LogicalResult launchFunc(gpu::LaunchFuncOp op) {
  if (op.getAsyncObject())
    return refuse(op, "names a stream of another dialect: leave it "
                      "out, or write an mgpu.launch");
  Operation *found =
      SymbolTable::lookupNearestSymbolFrom(op, op.getKernelAttr());
  if (!found) // MLIR looks only at launches that no loop is around
    return op.emitOpError("launches ")
           << op.getKernelAttr() << ", which is not there";
  auto kernel = dyn_cast<gpu::GPUFuncOp>(found);
  if (!kernel || kernel.isExternal())
    return refuse(op, "launches what is no gpu.func with a body");
  if (TypeRange(kernel.getArgumentTypes()) != TypeRange(op.getKernelOperands()))
    return op.emitOpError("passes ")
           << op.getKernelOperands().getTypes() << " to '" << kernel.getName()
           << "', which takes " << kernel.getArgumentTypes();
  return launch(op, shapeOf(op), kernel.getName(), kernel.getBody(),
                op.getKernelOperands(), kernel.getWorkgroupAttributions(),
                kernel.getPrivateAttributions());
}

LogicalResult launchBody(gpu::LaunchOp op) {
  return launch(op, shapeOf(op), "launch", op.getBody(), {},
                op.getWorkgroupAttributions(), op.getPrivateAttributions());
}

/// Functions of gpu.modules, for launches to find them.
void moveOut(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto inner : module.getOps<gpu::GPUModuleOp>()) {
    SymbolTable names(inner);
    SmallVector<Operation *> found;
    for (auto function : inner.getOps<func::FuncOp>())
      found.push_back(function);
    // All have their names before the first goes, which may call the others.
    for (Operation *op : found)
      if (StringAttr name = SymbolTable::getSymbolName(op);
          symbols.lookup(name))
        (void)names.renameToUnique(op, {&symbols});
    for (Operation *op : found) {
      op->remove();
      symbols.insert(op);
    }
  }
}

} // namespace

LogicalResult launchGpuOps(ModuleOp module) {
  SmallVector<Operation *> launches, waits;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<gpu::LaunchFuncOp, gpu::LaunchOp>(op))
        launches.push_back(op);
      else if (isa<gpu::WaitOp>(op))
        waits.push_back(op);
      return isa<ir::LaunchOp, gpu::LaunchOp>(op) ? WalkResult::skip()
                                                  : WalkResult::advance();
    });
  if (launches.empty() && waits.empty())
    return success();
  module.getContext()->loadDialect<memref::MemRefDialect>();
  moveOut(module);
  SmallVector<Operation *> all(launches);
  all.append(waits);
  for (Operation *op : all)
    llvm::TypeSwitch<Operation *>(op)
        .Case<gpu::LaunchFuncOp, gpu::LaunchOp, gpu::WaitOp>(
            [](auto each) { each.getAsyncDependenciesMutable().clear(); });
  bool areAllTaken = true;
  for (Operation *op : all) {
    if (!op->use_empty()) {
      StringRef user = op->user_begin()->getName().getStringRef();
      (void)refuse(op, "hands its token to '" + user +
                           "'; only launches and gpu.wait may take one");
    } else if (hasClusters(op)) {
      (void)refuse(op, "asks for clusters of blocks, which tune chooses "
                       "(cluster_x): leave them out");
    } else if (auto named = dyn_cast<gpu::LaunchFuncOp>(op)) {
      if (failed(launchFunc(named)))
        return failure();
    } else if (auto whole = dyn_cast<gpu::LaunchOp>(op)) {
      if (failed(launchBody(whole)))
        return failure();
    }
    if (op->hasAttr(refusedAttr))
      areAllTaken = false;
    else
      op->erase();
  }
  if (areAllTaken)
    for (auto inner :
         llvm::make_early_inc_range(module.getOps<gpu::GPUModuleOp>()))
      inner.erase();
  return success();
}

} // namespace mgpu::planner
