// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads what launches of the gpu dialect say alike: sizes, clusters and
// devices.
#include "dialect/conversion/gpu/GpuLaunches.h"

#include "dialect/conversion/gpu/BulkOps.h"
#include "dialect/conversion/gpu/SparseProducts.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// The sizes as indices, whatever integers they are.
SmallVector<Value> sizesOf(Operation *op, const gpu::KernelDim3 &sizes) {
  OpBuilder b(op);
  SmallVector<Value> indices;
  for (Value size : {sizes.x, sizes.y, sizes.z})
    indices.push_back(size.getType().isIndex()
                          ? size
                          : b.createOrFold<arith::IndexCastOp>(
                                op->getLoc(), b.getIndexType(), size));
  return indices;
}

template <typename Launch>
GpuLaunchShape shapeOfEither(Launch op) {
  GpuLaunchShape shape{sizesOf(op, op.getGridSizeOperandValues()),
                       sizesOf(op, op.getBlockSizeOperandValues()),
                       {},
                       op.getDynamicSharedMemorySize()};
  if (op.hasClusterSize())
    shape.cluster = sizesOf(
        op, {op.getClusterSizeX(), op.getClusterSizeY(), op.getClusterSizeZ()});
  return shape;
}

} // namespace

GpuLaunchShape shapeOf(gpu::LaunchOp op) { return shapeOfEither(op); }

GpuLaunchShape shapeOf(gpu::LaunchFuncOp op) { return shapeOfEither(op); }

FailureOr<Value> deviceFor(Operation *op, const DefaultDevice &now) {
  if (!now.handle && !now.isUnclear)
    for (Value memref : ir::memrefsOf(op))
      if (Value shown = ir::deviceOf(memref))
        return shown;
  return defaultDeviceAt(op, now);
}

LogicalResult answerClusters(Operation *op, const GpuLaunchShape &shape,
                             ir::LaunchOp launch) {
  if (shape.cluster.empty())
    return success(); // without sizes a cluster is one block
  // Longer ones are several launches of a GPU, which would cut clusters.
  constexpr int64_t mostBlocks[] = {2147483647, 65535, 65535};
  SmallVector<int64_t, 3> sizes;
  for (auto [size, grid] : llvm::zip_equal(shape.cluster, shape.grid)) {
    std::optional<int64_t> known = getConstantIntValue(size);
    std::optional<int64_t> blocks = getConstantIntValue(grid);
    if (!known || !blocks)
      return ir::emitUnsupported(op)
             << "asks for clusters of blocks whose sizes, and the grid's, are "
                "not constants";
    if (*known < 1 || *blocks % *known != 0)
      return op->emitOpError("has a grid of ")
             << *blocks << " blocks, which clusters of " << *known
             << " do not divide";
    if (*known > 1 && *blocks > mostBlocks[sizes.size()])
      return ir::emitUnsupported(op)
             << "gives clusters to a grid of " << *blocks
             << " blocks along one dimension";
    sizes.push_back(*known);
  }
  launch->setAttr(ir::clusterName,
                  ir::ClusterAttr::get(op->getContext(), uint32_t(sizes[0]),
                                       uint32_t(sizes[1]), uint32_t(sizes[2])));
  launch.walk([&](Operation *query) {
    OpBuilder b(query);
    Location loc = query->getLoc();
    auto answer = [&](auto asked) {
      const gpu::Dimension axis = asked.getDimension();
      Value size = arith::ConstantIndexOp::create(
          b, loc, *getConstantIntValue(shape.cluster[size_t(axis)]));
      Value block = gpu::BlockIdOp::create(b, loc, axis);
      Value grid = gpu::GridDimOp::create(b, loc, axis);
      llvm::TypeSwitch<Operation *>(query)
          .Case([&](gpu::ClusterIdOp) {
            asked.replaceAllUsesWith(
                arith::DivUIOp::create(b, loc, block, size).getResult());
          })
          .Case([&](gpu::ClusterDimOp) {
            asked.replaceAllUsesWith(
                arith::DivUIOp::create(b, loc, grid, size).getResult());
          })
          .Case([&](gpu::ClusterBlockIdOp) {
            asked.replaceAllUsesWith(
                arith::RemUIOp::create(b, loc, block, size).getResult());
          })
          .Case(
              [&](gpu::ClusterDimBlocksOp) { asked.replaceAllUsesWith(size); });
      query->erase();
    };
    llvm::TypeSwitch<Operation *>(query)
        .Case<gpu::ClusterIdOp, gpu::ClusterDimOp, gpu::ClusterBlockIdOp,
              gpu::ClusterDimBlocksOp>(answer);
  });
  return success();
}

// Launches of kernels whose text the module has.

namespace {

/// The memory that a kernel needs beside its arguments.
struct Attributions {
  ArrayRef<BlockArgument> workgroup, privates;
};

/// MLIR's, but for loops that never end: its return from them is a function's.
class Lifting : public ControlFlowToSCFTransformation {
  FailureOr<Operation *> createUnreachableTerminator(Location, OpBuilder &,
                                                     Region &region) override {
    return ir::emitUnsupported(region.getParentOp())
           << "has a loop that never ends, which kernels do not support";
  }
};

/// Makes scf operations of a kernel's branches between blocks.
LogicalResult liftBranches(Region &body) {
  if (body.hasOneBlock())
    return success();
  IRRewriter rewriter(body.getContext());
  (void)eraseUnreachableBlocks(rewriter, body);
  if (body.hasOneBlock())
    return success();
  Lifting lifting;
  DominanceInfo dominance(body.getParentOp());
  return success(succeeded(transformCFGToSCF(body, lifting, dominance)));
}

/// Reports, at `op`, a kernel that mgpu.launch has no form for.
LogicalResult checkKernel(Operation *op, const Attributions &memory) {
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
void mapIds(OpBuilder &b, gpu::LaunchOp launch, IRMapping &map) {
  Block &from = launch.getBody().front();
  Location loc = launch.getLoc();
  auto id = [&]<typename Op>(unsigned first) {
    for (unsigned axis = 0; axis < 3; ++axis)
      map.map(from.getArgument(first + axis),
              Op::create(b, loc, gpu::Dimension(axis)).getResult());
  };
  id.operator()<gpu::BlockIdOp>(0);
  id.operator()<gpu::ThreadIdOp>(3);
  id.operator()<gpu::GridDimOp>(6);
  id.operator()<gpu::BlockDimOp>(9);
  if (!launch.hasClusterSize())
    return;
  id.operator()<gpu::ClusterIdOp>(12);
  id.operator()<gpu::ClusterDimBlocksOp>(15);
}

/// Globals that a kernel names are memory of the host's module, which the
/// launch uses.
void hoistGlobals(ir::LaunchOp launch) {
  SmallVector<Operation *> found;
  launch.walk([&](memref::GetGlobalOp get) { found.push_back(get); });
  for (Operation *get : found)
    get->moveBefore(launch);
}

/// Makes an mgpu.launch before `op`, with the operations of `body`, whose first
/// arguments are `known` if any.
LogicalResult launch(gpu::AsyncOpInterface op, const DefaultDevice &now,
                     const GpuLaunchShape &shape, StringRef name, Region &body,
                     ValueRange known, const Attributions &memory) {
  nameMemorySpaces(body.getParentOp());
  if (failed(liftBranches(body)) || failed(checkKernel(op, memory)))
    return failure();
  FailureOr<Value> device = deviceFor(op, now);
  if (failed(device))
    return failure();
  OpBuilder b(op);
  SmallVector<Type> workgroupTypes;
  for (BlockArgument argument : memory.workgroup)
    workgroupTypes.push_back(argument.getType());
  Value stream = streamOf(b, op, *device);
  auto made = ir::LaunchOp::create(b, op->getLoc(), *device, shape.grid,
                                   shape.block, stream, ValueRange(),
                                   workgroupTypes, shape.dynamicSharedBytes);
  made->setAttr("mgpu.name", b.getStringAttr(name));
  IRMapping map;
  Block &from = body.front(), &to = made.getBody().front();
  b.setInsertionPoint(to.getTerminator());
  if (auto whole = dyn_cast<gpu::LaunchOp>(*op))
    mapIds(b, whole, map);
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
  takeSparse(op, made);
  placeWorkgroupGlobals(made);
  hoistGlobals(made);
  if (failed(answerClusters(op, shape, made)) || failed(expandBulkOps(made)))
    return failure();
  return verify(made);
}

/// Compares the sizes that a kernel says it is launched with, if it does, with
/// those of the launch: here, or in an assertion of the host.
LogicalResult checkKnown(gpu::LaunchFuncOp op,
                         std::optional<ArrayRef<int32_t>> known,
                         ArrayRef<Value> sizes, StringRef what) {
  if (!known)
    return success();
  OpBuilder b(op);
  for (auto [k, size] : llvm::enumerate(sizes)) {
    const int64_t expected = (*known)[k];
    std::string text =
        (what + " " + Twine("xyz"[k]) + " of the kernel is " + Twine(expected))
            .str();
    if (std::optional<int64_t> given = getConstantIntValue(size)) {
      if (*given != expected)
        return op.emitOpError(text) << ", but it is launched with " << *given;
      continue;
    }
    Value wanted = arith::ConstantOp::create(
        b, op.getLoc(), b.getIntegerAttr(size.getType(), expected));
    Value same = arith::CmpIOp::create(b, op.getLoc(), arith::CmpIPredicate::eq,
                                       size, wanted);
    cf::AssertOp::create(b, op.getLoc(), same, text);
  }
  return success();
}

} // namespace

LogicalResult convertLaunch(gpu::LaunchFuncOp op, const DefaultDevice &now) {
  if (op.getAsyncObject())
    return ir::emitUnsupported(op)
           << "names a stream of another dialect: leave "
              "it out, or write an mgpu.launch";
  if (auto binary = dyn_cast_or_null<gpu::BinaryOp>(
          SymbolTable::lookupNearestSymbolFrom(op, op.getKernelModuleName())))
    return launchBinary(op, binary, now);
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
  const GpuLaunchShape shape = shapeOf(op);
  if (failed(checkKnown(op, kernel.getKnownBlockSize(), shape.block,
                        "known_block_size")) ||
      failed(checkKnown(op, kernel.getKnownGridSize(), shape.grid,
                        "known_grid_size")))
    return failure();
  return launch(
      op, now, shape, kernel.getName(), kernel.getBody(),
      op.getKernelOperands(),
      {kernel.getWorkgroupAttributions(), kernel.getPrivateAttributions()});
}

LogicalResult convertLaunch(gpu::LaunchOp op, const DefaultDevice &now) {
  auto name = op->getAttrOfType<StringAttr>("mgpu.name");
  return launch(op, now, shapeOf(op), name ? name.getValue() : "launch",
                op.getBody(), {},
                {op.getWorkgroupAttributions(), op.getPrivateAttributions()});
}

// Launches of kernels that are compiled already.

namespace {

/// The architecture of an object for NVIDIA GPUs and, as the launch passes it,
/// its code.
std::optional<NamedAttribute> objectFrom(Attribute attribute) {
  auto object = dyn_cast<gpu::ObjectAttr>(attribute);
  auto target =
      object ? dyn_cast<NVVM::NVVMTargetAttr>(object.getTarget()) : nullptr;
  if (!target || object.getFormat() == gpu::CompilationTarget::Offload)
    return std::nullopt;
  std::string bytes = object.getObject().str();
  if (object.getFormat() == gpu::CompilationTarget::Assembly &&
      (bytes.empty() || bytes.back() != '\0'))
    bytes += '\0'; // as the driver wants it
  MLIRContext *context = attribute.getContext();
  return NamedAttribute(StringAttr::get(context, target.getChip()),
                        StringAttr::get(context, bytes));
}

/// MLIR's kernels take a memref as its memory, twice, its offset, sizes and
/// strides.
LogicalResult addDescriptor(OpBuilder &b, Operation *op, Value memref,
                            SmallVectorImpl<Value> &args) {
  auto type = dyn_cast<MemRefType>(memref.getType());
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!type || failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::is_contained(ArrayRef(strides), ShapedType::kDynamic) ||
      offset != 0)
    return ir::emitUnsupported(op)
           << "passes memory of type " << memref.getType()
           << " to a kernel that is compiled already: its strides are not "
              "constants, or it has an offset";
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, op->getLoc(), value);
  };
  args.append({memref, memref, constant(0)});
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    args.push_back(
        b.createOrFold<memref::DimOp>(op->getLoc(), memref, constant(dim)));
  for (int64_t stride : strides)
    args.push_back(constant(stride));
  return success();
}

} // namespace

LogicalResult launchBinary(gpu::LaunchFuncOp op, gpu::BinaryOp binary,
                           const DefaultDevice &now) {
  const GpuLaunchShape shape = shapeOf(op);
  SmallVector<NamedAttribute> objects;
  for (Attribute each : binary.getObjects())
    if (auto object = objectFrom(each))
      objects.push_back(*object);
  if (objects.empty() || !shape.cluster.empty())
    return ir::emitUnsupported(op)
           << (objects.empty() ? "names a gpu.binary without an object for "
                                 "NVIDIA GPUs (#nvvm.target)"
                               : "gives clusters to a kernel that is compiled "
                                 "already");
  FailureOr<Value> device = deviceFor(op, now);
  if (failed(device))
    return failure();
  OpBuilder b(op);
  SmallVector<Value> args;
  for (Value operand : op.getKernelOperands()) {
    if (!isa<BaseMemRefType>(operand.getType()))
      args.push_back(operand);
    else if (failed(addDescriptor(b, op, operand, args)))
      return failure();
  }
  Value stream = streamOf(b, op, *device);
  auto made =
      ir::LaunchOp::create(b, op->getLoc(), *device, shape.grid, shape.block,
                           stream, args, TypeRange(), shape.dynamicSharedBytes);
  made->setAttr("source",
                b.getStringAttr("gpu.binary @" + binary.getSymName()));
  made->setAttr("entry", b.getStringAttr(op.getKernelName().getValue()));
  made->setAttr("objects", b.getDictionaryAttr(objects));
  return verify(made);
}

} // namespace mgpu::conversion
