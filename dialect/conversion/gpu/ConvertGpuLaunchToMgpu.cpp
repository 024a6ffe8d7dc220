// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTGPULAUNCHTOMGPU
#include "dialect/conversion/Passes.h.inc"

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

/// What a kernel needs memory for, beside its arguments.
struct Attributions {
  ArrayRef<BlockArgument> workgroup, privates;
};

/// Reports, at `op`, a kernel that mgpu.launch has no form for.
LogicalResult checkKernel(Operation *op, Region &body,
                          const Attributions &memory) {
  if (!body.hasOneBlock())
    return ir::emitUnsupported(op)
           << "has a kernel with branches between blocks of operations; write "
              "them with scf.if, scf.while";
  for (BlockArgument argument :
       llvm::concat<const BlockArgument>(memory.workgroup, memory.privates)) {
    auto type = cast<MemRefType>(argument.getType());
    if (!type.hasStaticShape() || !type.getLayout().isIdentity())
      return ir::emitUnsupported(op)
             << "has memory of its own without a static "
                "size and the default layout";
  }
  for (BlockArgument argument : memory.workgroup)
    if (!gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(
            cast<MemRefType>(argument.getType())))
      return ir::emitUnsupported(op)
             << "has workgroup memory of another space than "
                "#gpu.address_space<workgroup>: give it that";
  for (BlockArgument argument : memory.privates)
    if (auto space = cast<MemRefType>(argument.getType()).getMemorySpace();
        space && !isa<gpu::AddressSpaceAttr>(space))
      return ir::emitUnsupported(op)
             << "has private memory of another space than "
                "#gpu.address_space<private>: give it that";
  return success();
}

/// Maps the arguments of a gpu.launch that stand for ids and sizes, x, y and z
/// of each.
void mapIds(OpBuilder &b, Block &from, Location loc, IRMapping &map) {
  auto id = [&]<typename Op>(unsigned first) {
    for (unsigned axis = 0; axis < 3; ++axis)
      map.map(from.getArgument(first + axis),
              Op::create(b, loc, gpu::Dimension(axis)).getResult());
  };
  id.operator()<gpu::BlockIdOp>(0);
  id.operator()<gpu::ThreadIdOp>(3);
  id.operator()<gpu::GridDimOp>(6);
  id.operator()<gpu::BlockDimOp>(9);
}

/// Makes an mgpu.launch before `op`, with the operations of `body`, whose first
/// arguments are `known` if any.
LogicalResult launch(Operation *op, const Shape &shape, StringRef name,
                     Region &body, ValueRange known,
                     const Attributions &memory) {
  if (failed(checkKernel(op, body, memory)))
    return failure();
  FailureOr<Value> device = ir::deviceOfAll(op, ir::memrefsOf(op));
  if (failed(device))
    return failure();
  OpBuilder b(op);
  SmallVector<Type> workgroupTypes;
  for (BlockArgument argument : memory.workgroup)
    workgroupTypes.push_back(argument.getType());
  auto made = ir::LaunchOp::create(b, op->getLoc(), *device, shape.grid,
                                   shape.block, Value(), ValueRange(),
                                   workgroupTypes, shape.dynamicSharedBytes);
  made->setAttr("mgpu.name", b.getStringAttr(name));
  IRMapping map;
  Block &from = body.front(), &to = made.getBody().front();
  b.setInsertionPoint(to.getTerminator());
  if (isa<gpu::LaunchOp>(op))
    mapIds(b, from, op->getLoc(), map);
  for (auto [k, value] : llvm::enumerate(known))
    map.map(from.getArgument(unsigned(k)), value);
  for (auto [argument, buffer] :
       llvm::zip_equal(memory.workgroup, made.getWorkgroupBuffers()))
    map.map(argument, buffer);
  for (BlockArgument argument : memory.privates)
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
    return ir::emitUnsupported(op)
           << "names a stream of another dialect: leave "
              "it out, or write an mgpu.launch";
  Operation *found =
      SymbolTable::lookupNearestSymbolFrom(op, op.getKernelAttr());
  if (!found) // MLIR looks only at launches that no loop is around
    return op.emitOpError("launches ")
           << op.getKernelAttr() << ", which is not there";
  auto kernel = dyn_cast<gpu::GPUFuncOp>(found);
  if (!kernel || kernel.isExternal())
    return ir::emitUnsupported(op)
           << "launches what is not a gpu.func with a body";
  if (TypeRange(kernel.getArgumentTypes()) != TypeRange(op.getKernelOperands()))
    return op.emitOpError("passes ")
           << op.getKernelOperands().getTypes() << " to '" << kernel.getName()
           << "', which takes " << kernel.getArgumentTypes();
  return launch(
      op, shapeOf(op), kernel.getName(), kernel.getBody(),
      op.getKernelOperands(),
      {kernel.getWorkgroupAttributions(), kernel.getPrivateAttributions()});
}

LogicalResult launchBody(gpu::LaunchOp op) {
  return launch(op, shapeOf(op), "launch", op.getBody(), {},
                {op.getWorkgroupAttributions(), op.getPrivateAttributions()});
}

/// Copies the functions of gpu.modules to where launches find them.
void copyOut(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto inner : module.getOps<gpu::GPUModuleOp>()) {
    SymbolTable names(inner);
    auto functions = llvm::to_vector(inner.getOps<func::FuncOp>());
    // All have their names before the first is copied, which may call others.
    for (func::FuncOp function : functions)
      if (symbols.lookup(function.getName()))
        (void)names.renameToUnique(function, {&symbols});
    for (func::FuncOp function : functions)
      symbols.insert(function.clone());
  }
}

/// Makes the launch that `op` is; none for a gpu.wait.
LogicalResult convert(Operation *op) {
  if (!op->use_empty())
    return ir::emitUnsupported(op)
           << "hands its token to '"
           << op->user_begin()->getName().getStringRef()
           << "'; only launches and gpu.wait may take one";
  if (hasClusters(op))
    return ir::emitUnsupported(op)
           << "asks for clusters of blocks, which tune chooses (cluster_x): "
              "leave them out";
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([](gpu::LaunchFuncOp named) { return launchFunc(named); })
      .Case([](gpu::LaunchOp whole) { return launchBody(whole); })
      .Default(success());
}

struct ConvertGpuLaunchToMgpu
    : impl::ConvertGpuLaunchToMgpuBase<ConvertGpuLaunchToMgpu> {
  using ConvertGpuLaunchToMgpuBase::ConvertGpuLaunchToMgpuBase;

  void runOnOperation() override {
    SmallVector<Operation *> launches, waits;
    ir::walkHostCode(getOperation(), entry, [&](Operation *op) {
      if (isa<gpu::LaunchFuncOp, gpu::LaunchOp>(op))
        launches.push_back(op);
      else if (isa<gpu::WaitOp>(op))
        waits.push_back(op);
    });
    SmallVector<Operation *> all(launches);
    all.append(waits);
    if (all.empty())
      return markAllAnalysesPreserved();
    copyOut(getOperation());
    for (Operation *op : all)
      llvm::TypeSwitch<Operation *>(op)
          .Case<gpu::LaunchFuncOp, gpu::LaunchOp, gpu::WaitOp>(
              [](auto each) { each.getAsyncDependenciesMutable().clear(); });
    for (Operation *op : all) {
      if (failed(convert(op)))
        return signalPassFailure();
      op->erase();
    }
    for (auto inner :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (SymbolTable::symbolKnownUseEmpty(inner, getOperation()))
        inner.erase();
  }
};

} // namespace

} // namespace mgpu::conversion
