// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/KernelModule.h"

#include "dialect/mpmd/MpmdDialect.h"
#include "facts/KernelProduct.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/raw_ostream.h"

namespace mgpu::planner {

using namespace mlir;

void setDynamicSharedBytes(ModuleOp module, int64_t bytes) {
  if (bytes > 0)
    module.lookupSymbol("entry")->setAttr(
        "mgpu.dynamic_shared_bytes",
        Builder(module.getContext()).getI64IntegerAttr(bytes));
}

llvm::SmallVector<int64_t> productPositions(const KernelParts &kernel) {
  llvm::SmallVector<int64_t> positions;
  ir::LaunchOp launch = kernel.launch;
  if (!ir::productOf(launch) && !ir::sparseProductOf(launch))
    return positions;
  for (Value arg : launch.getArgs()) {
    int64_t position = 0;
    for (const Capture &capture : kernel.captures) {
      if (capture.value == arg)
        break;
      position += capture.type != Type();
    }
    positions.push_back(position);
  }
  return positions;
}

/// Whether it belongs to host code: commands, launches, memory that the module
/// has.
static bool isOfHost(Operation *op) {
  return isa_and_nonnull<ir::MgpuDialect>(op->getDialect()) ||
         isa<memref::GetGlobalOp, gpu::LaunchOp, gpu::LaunchFuncOp>(op);
}

static LogicalResult checkCallees(Operation *root, ModuleOp module,
                                  llvm::DenseSet<Operation *> &checked) {
  auto addressed = root->walk([](func::ConstantOp op) {
    op.emitOpError("in a kernel is not supported: call the function");
    return WalkResult::interrupt();
  });
  if (addressed.wasInterrupted())
    return failure();
  auto walked = root->walk([&](func::CallOp call) {
    auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal()) {
      call.emitOpError("calls '")
          << call.getCallee() << "', which has no body in this module";
      return WalkResult::interrupt();
    }
    if (!checked.insert(callee).second)
      return WalkResult::advance();
    auto ofHost = callee.walk([&](Operation *op) {
      if (!isOfHost(op))
        return WalkResult::advance();
      op->emitOpError("cannot be used inside a kernel, which calls '")
          << callee.getName() << "'";
      return WalkResult::interrupt();
    });
    return WalkResult(failure(ofHost.wasInterrupted() ||
                              failed(checkCallees(callee, module, checked))));
  });
  return failure(walked.wasInterrupted());
}

LogicalResult checkCallees(Operation *root, ModuleOp module) {
  llvm::DenseSet<Operation *> checked;
  return checkCallees(root, module, checked);
}

LogicalResult checkKernelBody(ir::LaunchOp launch) {
  Region &body = launch.getBody();
  for (BlockArgument workgroup : body.front().getArguments())
    if (!isa<MemRefType>(workgroup.getType()))
      return launch.emitOpError("block argument of type ")
             << workgroup.getType() << " in a kernel is not supported";
  bool calls = false;
  auto walked = body.walk([&](Operation *op) {
    calls |= isa<func::CallOp, func::ConstantOp>(op);
    bool ends = isa<ir::TerminatorOp>(op) && op->getParentRegion() == &body;
    if (isOfHost(op) && !ends) {
      op->emitOpError("cannot be used inside a kernel");
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    return failure();
  return calls ? checkCallees(launch, launch->getParentOfType<ModuleOp>())
               : success();
}

void cloneCallees(Operation *root, ModuleOp from, ModuleOp into) {
  root->walk([&](func::CallOp call) {
    if (into.lookupSymbol(call.getCallee()))
      return;
    Operation *copy = from.lookupSymbol(call.getCallee())->clone();
    SymbolTable::setSymbolVisibility(copy, SymbolTable::Visibility::Private);
    into.push_back(copy);
    cloneCallees(copy, from, into);
  });
}

/// Leaves out of locations which work of a pipeline they belong to: one kernel
/// does it for all microbatches, and is read without that dialect.
static void dropWorks(ModuleOp module) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](FusedLoc fused) -> std::optional<Attribute> {
    if (!isa_and_nonnull<mpmd::WorkAttr>(fused.getMetadata()))
      return std::nullopt;
    ArrayRef<Location> all = fused.getLocations();
    return all.size() == 1 ? Attribute(LocationAttr(all.front()))
                           : Attribute(FusedLoc::get(fused.getContext(), all));
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/false,
                                        /*replaceLocs=*/true);
}

OwningOpRef<ModuleOp> buildKernelModule(const KernelParts &kernel) {
  ir::LaunchOp launch = kernel.launch;
  Location location = launch.getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  llvm::SmallVector<Type> argumentTypes;
  for (const Capture &capture : kernel.captures)
    if (capture.type)
      argumentTypes.push_back(capture.type);
  OpBuilder builder(module->getBodyRegion());
  auto entry =
      func::FuncOp::create(builder, location, "entry",
                           builder.getFunctionType(argumentTypes, TypeRange()));

  IRMapping mapping;
  launch.getBody().cloneInto(&entry.getBody(), mapping);
  Block &block = entry.getBody().front();
  builder.setInsertionPointToStart(&block);
  for (BlockArgument workgroup : block.getArguments())
    workgroup.replaceAllUsesWith(
        memref::AllocaOp::create(builder, location,
                                 cast<MemRefType>(workgroup.getType()))
            .getResult());
  block.eraseArguments(0, block.getNumArguments());
  llvm::SmallDenseMap<Value, Value> insideOf;
  for (const Capture &capture : kernel.captures) {
    Value inside;
    if (!capture.type) {
      inside = builder.clone(*capture.value.getDefiningOp())->getResult(0);
    } else {
      inside = block.addArgument(capture.type, capture.value.getLoc());
      Type wanted = capture.value.getType();
      if (!isa<MemRefType>(wanted) && isa<MemRefType>(capture.type))
        inside = memref::LoadOp::create(builder, location, inside);
      else if (capture.type != wanted)
        inside = memref::CastOp::create(builder, location, wanted, inside);
    }
    insideOf[capture.value] = inside;
  }
  entry.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (Value inside = insideOf.lookup(operand.get()))
        operand.set(inside);
  });
  for (ir::TerminatorOp terminator :
       llvm::to_vector(entry.getOps<ir::TerminatorOp>())) {
    builder.setInsertionPoint(terminator);
    func::ReturnOp::create(builder, location);
    terminator.erase();
  }
  cloneCallees(entry, launch->getParentOfType<ModuleOp>(), *module);
  setDynamicSharedBytes(*module, kernel.dynamicSharedBytes);
  if (auto product = facts::productOf(entry, ir::productOf(launch),
                                      productPositions(kernel)))
    entry->setAttr(ir::productName, product);
  if (ir::ClusterAttr cluster = ir::clusterOf(launch))
    entry->setAttr(ir::clusterName, cluster);
  if (ir::SparseProductAttr of = ir::sparseProductOf(launch))
    entry->setAttr(ir::sparseName,
                   ir::SparseProductAttr::get(
                       of.getContext(), of.getKind(), of.getRows(),
                       of.getColumns(), of.getEntries(), of.getBreadth(),
                       of.getIsFirstTurned(), of.getIsSecondTurned(),
                       productPositions(kernel)));
  dropWorks(*module);
  return module;
}

std::string printKernel(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // Made of verified operations whose operands keep their types.
  OpPrintingFlags flags;
  flags.assumeVerified().useLocalScope().enableDebugInfo();
  // MLIR prints the cases of a switch without their sign and does not read
  // those back that then are too large.
  auto walked =
      module.walk([](cf::SwitchOp) { return WalkResult::interrupt(); });
  flags.printGenericOpForm(walked.wasInterrupted());
  module->print(stream, flags);
  text += '\n';
  return text;
}

} // namespace mgpu::planner
