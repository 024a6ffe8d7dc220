// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/Passes.h"
#include "dialect/conversion/gpu/GpuLaunches.h"
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/HostCode.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mgpu::conversion {

#define GEN_PASS_DEF_CONVERTGPULAUNCHTOMGPU
#include "dialect/conversion/Passes.h.inc"

using namespace mlir;

namespace {

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

/// The regions of a loop or branch. A device that one of them chooses holds in
/// it alone, as far as the text shows.
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
    // An operation that names no device needs none.
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
          .Case<gpu::LaunchFuncOp, gpu::LaunchOp>(
              [&](auto each) { return convertLaunch(each, now); })
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
      if (isRunnerCall(&op))
        result = convertRunnerCall(&op);
      else if (isa<gpu::GPUDialect>(op.getDialect()))
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

/// Constants of the llvm dialect, which MLIR's own passes make, are others'.
void takeConstants(ModuleOp module) {
  SmallVector<LLVM::ConstantOp> found;
  module.walk([&](LLVM::ConstantOp constant) { found.push_back(constant); });
  for (LLVM::ConstantOp constant : found) {
    auto value = dyn_cast<TypedAttr>(constant.getValue());
    if (!value || value.getType() != constant.getType())
      continue;
    OpBuilder b(constant);
    constant.replaceAllUsesWith(
        arith::ConstantOp::create(b, constant.getLoc(), value).getResult());
    constant.erase();
  }
}

bool isOfGpuHost(Operation *op) {
  return isa<gpu::LaunchFuncOp, gpu::LaunchOp, gpu::SetDefaultDeviceOp>(op) ||
         isMemoryOp(op) || isPrint(op) || isRunnerCall(op);
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
    takeConstants(getOperation());
    copyOut(getOperation());
    for (Operation *op : functions) {
      auto function = cast<func::FuncOp>(op);
      if (function.isExternal())
        continue;
      DefaultDevice now;
      now.isUnclear = choosesAnywhere && (function.getName() != entry ||
                                          !function.getBody().hasOneBlock());
      if (failed(retypeTokens(function)) ||
          failed(Converter().visit(function.getBody(), now)) ||
          failed(joinWaitingLaunches(function)))
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

#define GEN_PASS_DEF_CONVERTLAUNCHIDSTOGPU
#include "dialect/conversion/Passes.h.inc"

namespace {

struct ConvertLaunchIdsToGpu
    : impl::ConvertLaunchIdsToGpuBase<ConvertLaunchIdsToGpu> {
  void runOnOperation() override {
    bool isChanged = false;
    getOperation()->walk<WalkOrder::PreOrder>([&](ir::LaunchOp launch) {
      isChanged |= launch.getNumIdArguments() > 0;
      launch.replaceIdArguments();
      return WalkResult::skip();
    });
    if (!isChanged)
      markAllAnalysesPreserved();
  }
};

} // namespace

} // namespace mgpu::conversion
