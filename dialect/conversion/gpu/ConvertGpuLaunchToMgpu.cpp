// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/gpu/BulkOps.h"
#include "dialect/conversion/gpu/GpuHost.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Conversion/ControlFlowToSCF/ControlFlowToSCF.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTGPULAUNCHTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

/// What both kinds of launches say alike.
struct Shape {
  SmallVector<Value> grid, block, cluster;
  Value dynamicSharedBytes;
};

SmallVector<Value> sizesOf(const gpu::KernelDim3 &sizes) {
  return {sizes.x, sizes.y, sizes.z};
}

template <typename Launch>
Shape shapeOf(Launch op) {
  Shape shape{sizesOf(op.getGridSizeOperandValues()),
              sizesOf(op.getBlockSizeOperandValues()),
              {},
              op.getDynamicSharedMemorySize()};
  if (op.hasClusterSize())
    shape.cluster = {op.getClusterSizeX(), op.getClusterSizeY(),
                     op.getClusterSizeZ()};
  return shape;
}

/// Answers what a kernel asks of clusters of blocks, which `shape` gives sizes:
/// blocks whose ids have one quotient are of one cluster.
LogicalResult answerClusters(Operation *op, const Shape &shape,
                             ir::LaunchOp launch) {
  if (shape.cluster.empty())
    return success(); // without sizes a cluster is one block
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
  }
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

/// What a kernel needs memory for, beside its arguments.
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

/// The device that runs a launch: the one chosen, else that of its memory.
FailureOr<Value> deviceFor(Operation *op, const DefaultDevice &now) {
  if (!now.handle && !now.isUnclear)
    for (Value memref : ir::memrefsOf(op))
      if (Value shown = ir::deviceOf(memref))
        return shown;
  return defaultDeviceAt(op, now);
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
                     const Shape &shape, StringRef name, Region &body,
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

/// What an object for NVIDIA GPUs is compiled for and, as the launch passes it,
/// what is compiled.
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

/// A launch of a kernel that is compiled already.
LogicalResult launchBinary(gpu::LaunchFuncOp op, gpu::BinaryOp binary,
                           const DefaultDevice &now) {
  const Shape shape = shapeOf(op);
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

LogicalResult launchFunc(gpu::LaunchFuncOp op, const DefaultDevice &now) {
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
  const Shape shape = shapeOf(op);
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

LogicalResult launchBody(gpu::LaunchOp op, const DefaultDevice &now) {
  auto name = op->getAttrOfType<StringAttr>("mgpu.name");
  return launch(op, now, shapeOf(op), name ? name.getValue() : "launch",
                op.getBody(), {},
                {op.getWorkgroupAttributions(), op.getPrivateAttributions()});
}

/// Copies the functions and globals of gpu.modules to where launches find them.
void copyOut(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto inner : module.getOps<gpu::GPUModuleOp>()) {
    SymbolTable names(inner);
    SmallVector<Operation *> shared;
    for (Operation &op : inner.getOps())
      if (isa<func::FuncOp, memref::GlobalOp>(op))
        shared.push_back(&op);
    // All have their names before the first is copied, which may call others.
    for (Operation *op : shared)
      if (symbols.lookup(SymbolTable::getSymbolName(op)))
        (void)names.renameToUnique(op, {&symbols});
    for (Operation *op : shared)
      symbols.insert(op->clone());
  }
}

/// Converts one function in program order.
class Converter {
public:
  LogicalResult visit(Region &region, DefaultDevice &now);

private:
  LogicalResult convert(Operation *op, DefaultDevice &now);
  LogicalResult enter(Operation *op, DefaultDevice &now);
};

bool chooses(Operation *op) {
  return op
      ->walk([](gpu::SetDefaultDeviceOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// The regions of a loop or branch. What one of them chooses holds in it alone,
/// as far as the text shows.
LogicalResult Converter::enter(Operation *op, DefaultDevice &now) {
  const bool mayChange = chooses(op);
  DefaultDevice inside = now;
  inside.isUnclear |= mayChange && isa<LoopLikeOpInterface>(op);
  for (Region &region : op->getRegions()) {
    DefaultDevice here = inside;
    if (failed(visit(region, here)))
      return failure();
  }
  now.isUnclear |= mayChange;
  return success();
}

LogicalResult Converter::convert(Operation *op, DefaultDevice &now) {
  OpBuilder b(op);
  if (auto chosen = dyn_cast<gpu::SetDefaultDeviceOp>(op)) {
    Value index = b.createOrFold<arith::IndexCastOp>(
        op->getLoc(), b.getIndexType(), chosen.getDevIndex());
    now = {ir::GetDeviceOp::create(
               b, op->getLoc(), ir::DeviceType::get(op->getContext()), index),
           false};
    op->erase();
    return success();
  }
  if (isMemoryOp(op)) {
    Value device;
    // What names no device needs none.
    if (!isa<gpu::HostRegisterOp, gpu::HostUnregisterOp>(op)) {
      FailureOr<Value> found = defaultDeviceAt(op, now);
      if (failed(found))
        return failure();
      device = *found;
    }
    return convertMemoryOp(op, device);
  }
  LogicalResult result =
      llvm::TypeSwitch<Operation *, LogicalResult>(op)
          .Case([&](gpu::LaunchFuncOp named) { return launchFunc(named, now); })
          .Case([&](gpu::LaunchOp whole) { return launchBody(whole, now); })
          .Default([](Operation *other) {
            return ir::emitUnsupported(other)
                   << "is not supported in host code";
          });
  if (succeeded(result))
    op->erase();
  return result;
}

LogicalResult Converter::visit(Region &region, DefaultDevice &now) {
  for (Block &block : region)
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isPrint(&op)) {
        convertPrint(&op);
        continue;
      }
      LogicalResult result = success();
      if (isa<gpu::GPUDialect>(op.getDialect()))
        result = convert(&op, now);
      else if (!isa<ir::LaunchOp, scf::ParallelOp>(op))
        result = enter(&op, now);
      if (failed(result))
        return failure();
    }
  return success();
}

/// Tokens become streams, also where loops and branches hand them on.
LogicalResult retypeTokens(func::FuncOp function) {
  auto stream = ir::StreamType::get(function.getContext());
  auto retype = [&](Value value) {
    if (isa<gpu::AsyncTokenType>(value.getType()))
      value.setType(stream);
  };
  auto isToken = [](Type type) { return isa<gpu::AsyncTokenType>(type); };
  if (llvm::any_of(function.getArgumentTypes(), isToken) ||
      llvm::any_of(function.getResultTypes(), isToken))
    return ir::emitUnsupported(function)
           << "takes or returns a token, which calls cannot hand on; put what "
              "it does where it is called";
  function.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), retype);
    if (!isa<gpu::GPUDialect>(op->getDialect()))
      llvm::for_each(op->getResults(), retype);
  });
  return success();
}

bool isOfGpuHost(Operation *op) {
  return isa<gpu::LaunchFuncOp, gpu::LaunchOp, gpu::SetDefaultDeviceOp>(op) ||
         isMemoryOp(op) || isPrint(op);
}

struct ConvertGpuLaunchToMgpu
    : impl::ConvertGpuLaunchToMgpuBase<ConvertGpuLaunchToMgpu> {
  using ConvertGpuLaunchToMgpuBase::ConvertGpuLaunchToMgpuBase;

  void runOnOperation() override {
    llvm::SetVector<Operation *> functions;
    bool any = false, choosesAnywhere = false;
    ir::walkHostCode(getOperation(), entry, [&](Operation *op) {
      if (isa<func::FuncOp>(op))
        functions.insert(op);
      any |= isOfGpuHost(op);
      choosesAnywhere |= isa<gpu::SetDefaultDeviceOp>(op);
    });
    if (!any)
      return markAllAnalysesPreserved();
    copyOut(getOperation());
    for (Operation *op : functions) {
      auto function = cast<func::FuncOp>(op);
      if (function.isExternal())
        continue;
      DefaultDevice now;
      now.isUnclear = choosesAnywhere && (function.getName() != entry ||
                                          !function.getBody().hasOneBlock());
      if (failed(retypeTokens(function)) ||
          failed(Converter().visit(function.getBody(), now)))
        return signalPassFailure();
      // Launches have what these describe.
      function.walk([](nvgpu::TmaCreateDescriptorOp map) {
        if (map->use_empty())
          map.erase();
      });
    }
    for (auto inner :
         llvm::make_early_inc_range(getOperation().getOps<gpu::GPUModuleOp>()))
      if (SymbolTable::symbolKnownUseEmpty(inner, getOperation()))
        inner.erase();
  }
};

} // namespace

} // namespace mgpu::conversion
