// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/KernelPrepare.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/Folds.h"
#include "kernels/lower/LaneCheck.h"
#include "kernels/lower/LaunchShape.h"
#include "kernels/lower/Normalise.h"
#include "kernels/lower/SubgroupBarrier.h"
#include "kernels/lower/SubgroupControl.h"
#include "kernels/lower/SubgroupMatrix.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Inliner.h"
#include "mlir/Transforms/InliningUtils.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace mgpu::kernels {

namespace {

bool isSupported(Operation *op) {
  if (isa<func::FuncOp, func::CallOp, func::ReturnOp, memref::GlobalOp>(op))
    return true;
  if (isa<arith::ArithDialect, math::MathDialect, index::IndexDialect,
          vector::VectorDialect, ub::UBDialect, cf::ControlFlowDialect,
          affine::AffineDialect>(op->getDialect()))
    return true;
  if (isa<scf::ForOp, scf::IfOp, scf::WhileOp, scf::ConditionOp, scf::YieldOp,
          scf::ExecuteRegionOp, scf::IndexSwitchOp>(op))
    return true;
  if (isa<memref::LoadOp, memref::StoreOp, memref::AllocaOp, memref::SubViewOp,
          memref::CastOp, memref::ReinterpretCastOp, memref::ViewOp,
          memref::ExpandShapeOp, memref::CollapseShapeOp, memref::DimOp,
          memref::AtomicRMWOp, memref::GenericAtomicRMWOp,
          memref::AtomicYieldOp, memref::GetGlobalOp, memref::AssumeAlignmentOp,
          memref::ExtractStridedMetadataOp>(op))
    return true;
  return isa<gpu::ThreadIdOp, gpu::BlockIdOp, gpu::BlockDimOp, gpu::GridDimOp,
             gpu::GlobalIdOp, gpu::LaneIdOp, gpu::SubgroupIdOp,
             gpu::NumSubgroupsOp, gpu::SubgroupSizeOp, gpu::BarrierOp,
             gpu::AllReduceOp, gpu::SubgroupReduceOp, gpu::ShuffleOp,
             gpu::RotateOp, gpu::PrintfOp, gpu::YieldOp,
             gpu::DynamicSharedMemoryOp, gpu::SubgroupMmaLoadMatrixOp,
             gpu::SubgroupMmaStoreMatrixOp, gpu::SubgroupMmaComputeOp,
             gpu::SubgroupMmaElementwiseOp, gpu::SubgroupMmaConstantMatrixOp,
             gpu::SubgroupMmaExtractThreadLocalOp,
             gpu::SubgroupMmaInsertThreadLocalOp>(op);
}

bool isWorkgroup(MemRefType type) {
  return gpu::GPUDialect::hasWorkgroupMemoryAddressSpace(type);
}

LogicalResult checkOps(ModuleOp module) {
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == module.getOperation() || isSupported(op))
      return WalkResult::advance();
    op->emitOpError("is not supported in a kernel on the host target");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Inlines all calls and erases what was called.
LogicalResult inlineCalls(ModuleOp module, func::FuncOp entry) {
  // Functions that call the one before twice double with each level.
  constexpr size_t most = 1 << 16;
  size_t made = 0;
  InlinerInterface interface(module.getContext());
  const InlinerConfig config;
  for (;;) {
    SmallVector<func::CallOp> calls;
    entry.walk([&](func::CallOp call) { calls.push_back(call); });
    if (calls.empty())
      break;
    for (func::CallOp call : calls) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (!callee || callee.isDeclaration())
        return call.emitOpError()
               << "calls '" << call.getCallee()
               << "', which has no body in the kernel's module";
      for (Operation &op : callee.getBody().front().without_terminator())
        op.walk([&](Operation *) { ++made; });
      if (made > most)
        return call.emitOpError()
               << "stands for more than " << most
               << " operations, with what it calls, where calls are inlined, "
                  "as the host target does; call less often, or in a loop";
      if (failed(inlineRegion(interface, config.getCloneCallback(),
                              &callee.getBody(), call, call.getOperands(),
                              call.getResults())))
        return call.emitOpError("cannot be inlined");
      call.erase();
    }
  }
  for (auto function :
       llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (function != entry)
      function.erase();
  return success();
}

/// scf.index_switch becomes a chain of scf.if, whose control is then shared or
/// not like that of any other.
void lowerSwitches(ModuleOp module) {
  SmallVector<scf::IndexSwitchOp> switches;
  module.walk([&](scf::IndexSwitchOp op) { switches.push_back(op); });
  for (scf::IndexSwitchOp op : switches) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    scf::IfOp first;
    auto fill = [&](Block &to, Region &from) {
      if (to.mightHaveTerminator())
        to.getTerminator()->erase();
      to.getOperations().splice(to.end(), from.front().getOperations());
    };
    for (auto [value, region] :
         llvm::zip_equal(op.getCases(), op.getCaseRegions())) {
      Value here =
          arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, op.getArg(),
                                arith::ConstantIndexOp::create(b, loc, value));
      auto branch = scf::IfOp::create(b, loc, op.getResultTypes(), here,
                                      /*addThenBlock=*/true,
                                      /*addElseBlock=*/true);
      fill(branch.getThenRegion().front(), region);
      Block &otherwise = branch.getElseRegion().front();
      if (otherwise.mightHaveTerminator())
        otherwise.getTerminator()->erase();
      if (first) {
        b.setInsertionPointAfter(branch);
        scf::YieldOp::create(b, loc, branch.getResults());
      } else {
        first = branch;
      }
      b.setInsertionPointToEnd(&otherwise);
    }
    if (!first) { // only a default
      Block &body = op.getDefaultRegion().front();
      Operation *yield = body.getTerminator();
      op.replaceAllUsesWith(yield->getOperands());
      yield->erase();
      op->getBlock()->getOperations().splice(op->getIterator(),
                                             body.getOperations());
    } else {
      fill(*b.getInsertionBlock(), op.getDefaultRegion());
      op.replaceAllUsesWith(first.getResults());
    }
    op.erase();
  }
}

class Preparer {
public:
  Preparer(ModuleOp module, func::FuncOp entry, Dim3 block, Dim3 covered)
      : module(module), entry(entry), block(block), covered(covered),
        b(entry.getContext()) {}

  LogicalResult run();

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(b, entry.getLoc(), value);
  }
  static int64_t size(Dim3 of, gpu::Dimension dim) {
    return dim == gpu::Dimension::x   ? of.x
           : dim == gpu::Dimension::y ? of.y
                                      : of.z;
  }
  int64_t size(gpu::Dimension dim) const { return size(block, dim); }
  Value launch(LaunchArgument which, gpu::Dimension dim) {
    return entry.getArgument(numOwnArguments + which + unsigned(dim));
  }
  Value linearThread();
  Value query(Operation *op);
  void findSourceIds(gpu::Dimension dim);
  void guardLaunch();
  LogicalResult prepareBuffers();
  void dropAddressSpaces();

  ModuleOp module;
  func::FuncOp entry;
  Dim3 block, covered;
  OpBuilder b;
  unsigned numOwnArguments = 0;
  Value threads[3]; ///< of the object's blocks
  /// The source's ids, and the index of a thread in the launch.
  Value sourceThreads[3], sourceBlocks[3], globals[3];
};

Value Preparer::linearThread() {
  Location loc = entry.getLoc();
  Value line = arith::AddIOp::create(
      b, loc, threads[1],
      arith::MulIOp::create(b, loc, threads[2], constant(block.y)));
  return arith::AddIOp::create(
      b, loc, threads[0],
      arith::MulIOp::create(b, loc, line, constant(block.x)));
}

void Preparer::findSourceIds(gpu::Dimension dim) {
  Location loc = entry.getLoc();
  unsigned k = unsigned(dim);
  int64_t source = size(dim), here = size(covered, dim);
  Value blockId = launch(BlockId, dim);
  auto plus = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, y);
  };
  auto times = [&](Value x, int64_t y) -> Value {
    return arith::MulIOp::create(b, loc, x, constant(y));
  };
  auto quotient = [&](Value x, int64_t y) -> Value {
    return arith::DivUIOp::create(b, loc, x, constant(y));
  };
  auto rest = [&](Value x, int64_t y) -> Value {
    return arith::RemUIOp::create(b, loc, x, constant(y));
  };
  globals[k] = plus(times(blockId, here), threads[k]);
  if (here != source)
    globals[k] = plus(times(launch(FirstBlock, dim), source), globals[k]);
  if (here == source) {
    sourceBlocks[k] = blockId;
    sourceThreads[k] = threads[k];
  } else if (source % here == 0) { // the source's block stays one of the block
    sourceBlocks[k] =
        plus(launch(FirstBlock, dim), quotient(blockId, source / here));
    sourceThreads[k] =
        plus(times(rest(blockId, source / here), here), threads[k]);
  } else {
    sourceBlocks[k] = quotient(globals[k], source);
    sourceThreads[k] = rest(globals[k], source);
  }
}

/// Puts all but the ids and buffers under the condition that the thread is one
/// of the launch.
void Preparer::guardLaunch() {
  Block &front = entry.getBody().front();
  Operation *start = globals[2].getDefiningOp();
  for (auto alloca : front.getOps<memref::AllocaOp>())
    if (start->isBeforeInBlock(alloca))
      start = alloca;
  Location loc = entry.getLoc();
  Value inside;
  for (unsigned k = 0; k < 3; ++k) {
    auto dim = gpu::Dimension(k);
    if (size(dim) % size(covered, dim) == 0)
      continue;
    b.setInsertionPointAfter(inside ? inside.getDefiningOp() : start);
    Value extent = arith::MulIOp::create(b, loc, launch(EndBlock, dim),
                                         constant(size(dim)));
    Value here = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                       globals[k], extent);
    inside =
        inside ? arith::AndIOp::create(b, loc, inside, here).getResult() : here;
  }
  if (!inside)
    return;
  b.setInsertionPointAfter(inside.getDefiningOp());
  auto guard = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
  Block *body = guard.thenBlock();
  body->getOperations().splice(body->begin(), front.getOperations(),
                               std::next(guard->getIterator()),
                               front.getTerminator()->getIterator());
}

/// The value of an id or size query, or null where `op` is none.
Value Preparer::query(Operation *op) {
  Location loc = op->getLoc();
  if (auto id = dyn_cast<gpu::ThreadIdOp>(op))
    return sourceThreads[unsigned(id.getDimension())];
  if (auto id = dyn_cast<gpu::BlockIdOp>(op))
    return sourceBlocks[unsigned(id.getDimension())];
  if (auto dim = dyn_cast<gpu::GridDimOp>(op))
    return launch(GridDim, dim.getDimension());
  if (auto dim = dyn_cast<gpu::BlockDimOp>(op))
    return constant(size(dim.getDimension()));
  if (auto id = dyn_cast<gpu::GlobalIdOp>(op))
    return globals[unsigned(id.getDimension())];
  if (isa<gpu::LaneIdOp>(op))
    return arith::RemUIOp::create(b, loc, linearThread(),
                                  constant(subgroupSize));
  if (isa<gpu::SubgroupIdOp>(op))
    return arith::DivUIOp::create(b, loc, linearThread(),
                                  constant(subgroupSize));
  if (isa<gpu::NumSubgroupsOp>(op))
    return constant((int64_t(block.volume()) + subgroupSize - 1) /
                    subgroupSize);
  if (isa<gpu::SubgroupSizeOp>(op))
    return constant(subgroupSize);
  return {};
}

LogicalResult Preparer::prepareBuffers() {
  SmallVector<memref::AllocaOp> allocas;
  SmallVector<gpu::DynamicSharedMemoryOp> dynamic;
  entry.walk([&](Operation *op) {
    if (auto alloca = dyn_cast<memref::AllocaOp>(op))
      allocas.push_back(alloca);
    if (auto shared = dyn_cast<gpu::DynamicSharedMemoryOp>(op))
      dynamic.push_back(shared);
  });
  Operation *position = threads[2].getDefiningOp();
  for (memref::AllocaOp alloca : allocas) {
    if (!alloca.getType().hasStaticShape() ||
        !alloca.getType().getLayout().isIdentity())
      return alloca.emitOpError("needs a static size and the default layout on "
                                "the host target");
    if (isWorkgroup(alloca.getType()))
      ir::setMark(alloca, ir::Mark::Workgroup);
    alloca->moveAfter(position);
    position = alloca;
  }
  if (dynamic.empty())
    return success();
  auto bytes = entry->getAttrOfType<IntegerAttr>("mgpu.dynamic_shared_bytes");
  if (!bytes || bytes.getInt() <= 0)
    return ir::emitProgramError(dynamic.front()) << noDynamicMemory;
  b.setInsertionPointAfter(position);
  auto type = MemRefType::get({bytes.getInt()}, b.getI8Type(),
                              MemRefLayoutAttrInterface(),
                              dynamic.front().getType().getMemorySpace());
  auto buffer = memref::AllocaOp::create(b, entry.getLoc(), type,
                                         b.getI64IntegerAttr(128));
  ir::setMark(buffer, ir::Mark::Workgroup);
  for (gpu::DynamicSharedMemoryOp shared : dynamic) {
    Value cast =
        memref::CastOp::create(b, shared.getLoc(), shared.getType(), buffer);
    shared.replaceAllUsesWith(cast);
    shared.erase();
  }
  return success();
}

void Preparer::dropAddressSpaces() {
  AttrTypeReplacer replacer;
  replacer.addReplacement([](MemRefType type) -> std::optional<Type> {
    if (!type.getMemorySpace())
      return std::nullopt;
    return MemRefType::get(type.getShape(), type.getElementType(),
                           type.getLayout());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

LogicalResult Preparer::run() {
  Block &front = entry.getBody().front();
  Location loc = entry.getLoc();
  numOwnArguments = entry.getNumArguments();
  SmallVector<Type> inputs(entry.getArgumentTypes());
  for (unsigned k = 0; k < NumLaunchArguments; ++k) {
    inputs.push_back(b.getIndexType());
    front.addArgument(b.getIndexType(), loc);
  }
  entry.setFunctionType(
      FunctionType::get(b.getContext(), inputs, entry.getResultTypes()));
  SmallVector<Operation *> queries;
  SmallVector<std::pair<Operation *, gpu::Dimension>> sums;
  entry.walk([&](Operation *op) {
    if (auto dim = globalIndexOf(op, block))
      sums.push_back({op, *dim});
    if (isa<gpu::ThreadIdOp, gpu::BlockIdOp, gpu::GridDimOp, gpu::BlockDimOp,
            gpu::GlobalIdOp, gpu::LaneIdOp, gpu::SubgroupIdOp,
            gpu::NumSubgroupsOp, gpu::SubgroupSizeOp>(op))
      queries.push_back(op);
  });
  b.setInsertionPointToStart(&front);
  for (unsigned k = 0; k < 3; ++k)
    threads[k] = gpu::ThreadIdOp::create(b, loc, gpu::Dimension(k));
  for (unsigned k = 0; k < 3; ++k)
    findSourceIds(gpu::Dimension(k));
  for (auto [sum, dim] : sums) {
    Value index = globals[unsigned(dim)];
    b.setInsertionPoint(sum);
    if (Type type = sum->getResult(0).getType(); !type.isIndex())
      index = arith::IndexCastOp::create(b, loc, type, index);
    sum->getResult(0).replaceAllUsesWith(index);
  }
  for (Operation *op : queries) {
    b.setInsertionPoint(op);
    op->getResult(0).replaceAllUsesWith(query(op));
    op->erase();
  }
  if (failed(prepareBuffers()))
    return failure();
  guardLaunch();
  dropAddressSpaces();
  dropFastMath(module);
  return success();
}

} // namespace

void dropFastMath(ModuleOp module) {
  auto none = arith::FastMathFlagsAttr::get(module.getContext(),
                                            arith::FastMathFlags::none);
  module.walk([&](Operation *op) {
    if (auto math = dyn_cast<arith::ArithFastMathInterface>(op))
      op->setAttr(math.getFastMathAttrName(), none);
  });
}

FailureOr<func::FuncOp> prepareKernel(ModuleOp module, Dim3 block,
                                      Dim3 covered) {
  auto entry = module.lookupSymbol<func::FuncOp>("entry");
  if (!entry || entry.isDeclaration())
    return module.emitError("a kernel module needs a function @entry");
  if (!entry.getResultTypes().empty())
    return entry.emitError("a kernel returns nothing");
  if (failed(normaliseKernel(module, block)) || failed(checkOps(module)))
    return failure();
  if (failed(inlineCalls(module, entry)))
    return failure();
  lowerSwitches(module);
  ir::avoidWrongFolds(module, 64);
  PassManager cleanup(module.getContext());
  cleanup.enableVerifier(false);
  cleanup.addPass(createCanonicalizerPass());
  cleanup.addPass(createCSEPass());
  if (failed(cleanup.run(module)))
    return failure();
  lowerSubgroupMatrices(module, block);
  entry = module.lookupSymbol<func::FuncOp>("entry");
  if (failed(checkLanesMeet(entry, block)))
    return failure();
  flattenSubgroupControl(entry);
  if (failed(Preparer(module, entry, block, covered).run()))
    return failure();
  return entry;
}

} // namespace mgpu::kernels
