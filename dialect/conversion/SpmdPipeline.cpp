// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/SpmdPhases.h"
#include "dialect/mgpu/Folds.h"
#include "dialect/mpmd/MpmdDialect.h"
#include "dialect/sdy/SdyDialect.h"
#include "dialect/spmd/SpmdDialect.h"
#include "dialect/stablehlo/Companions.h"

#include "mlir/Conversion/TensorToLinalg/TensorToLinalgPass.h"
#include "mlir/Conversion/TosaToArith/TosaToArith.h"
#include "mlir/Conversion/TosaToLinalg/TosaToLinalg.h"
#include "mlir/Conversion/TosaToSCF/TosaToSCF.h"
#include "mlir/Conversion/TosaToTensor/TosaToTensor.h"
#include "mlir/Dialect/Arith/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/FuncBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Linalg/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/IR/TensorInferTypeOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/BufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Tensor/Transforms/SubsetInsertionOpInterfaceImpl.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Interfaces/SubsetOpInterface.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

namespace mgpu::conversion {

using namespace mlir;

namespace {

/// Rewrites operations that MLIR folds wrongly, so that it does not fold them.
/// No program has 2^31 trips of a loop or elements along a dimension, so that
/// casts of these to i32 drop nothing; as casts they are seen through.
struct AvoidWrongFolds : PassWrapper<AvoidWrongFolds, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AvoidWrongFolds)

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect>();
  }
  void runOnOperation() override {
    if (!ir::avoidWrongFolds(getOperation(), 32))
      markAllAnalysesPreserved();
  }
};

/// Does what upstream's pass of this name does, without a rewriter's rounds.
struct EmptyToAllocTensor
    : PassWrapper<EmptyToAllocTensor, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmptyToAllocTensor)

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<bufferization::BufferizationDialect>();
  }
  void runOnOperation() override {
    getOperation().walk([](tensor::EmptyOp op) {
      OpBuilder b(op);
      if (!op->use_empty())
        op->replaceAllUsesWith(bufferization::AllocTensorOp::create(
            b, op.getLoc(), op.getType(), op.getDynamicSizes()));
      op->erase();
    });
  }
};

} // namespace

static void addTosa(OpPassManager &passes) {
  tosa::addTosaToLinalgPasses(passes, {}, {}, std::nullopt);
  OpPassManager &function = passes.nest<func::FuncOp>();
  function.addPass(createTosaToTensorPass());
  function.addPass(createTosaToArithPass({.includeApplyRescale = true}));
  function.addPass(createTosaToSCFPass());
}

void addSpmdFrontEnds(OpPassManager &passes, const SpmdPipelineOptions &options,
                      const ExchangeCost &cost, bool calls) {
  const std::string &entry = options.entry;
  passes.addPass(createSelectEntry({entry}));
  passes.addPass(std::make_unique<AvoidWrongFolds>()); // before the inliner
  passes.addPass(createConvertShardToSpmd());
  passes.addPass(createPrepareStablehlo({entry}));
  passes.addPass(createExpandStablehlo());
  passes.addPass(createConvertRunParallelToSdy());
  if (calls) {
    passes.addPass(createInlineFunctions({entry}));
    passes.addPass(createInlinerPass());
    passes.addPass(createSymbolDCEPass());
  }
  passes.addPass(createExpandMpmd({entry}));
  passes.addPass(createAssignMeshes({entry, options.assign}));
  passes.addPass(createSimplifyFragments({entry}));
  passes.addPass(createSplitBackward({entry, options.schedule}));
  passes.addPass(createScheduleFragments({entry, options.schedule}));
  if (options.remat)
    passes.addPass(createRematFragments({entry}));
  passes.addPass(createConvertMpmdToSpmd({entry}));
  passes.addPass(createConvertSdyToSpmd({entry}));
  passes.addPass(createConvertStablehloToLinalg(
      {entry, llvm::to_vector(options.customs)}));
  if (calls) // what custom calls name is called by nothing any more
    passes.addPass(createSymbolDCEPass());
  if (options.tosa)
    addTosa(passes);
  passes.addPass(std::make_unique<AvoidWrongFolds>());
  passes.addPass(createPartitionTensors({entry}, cost));
}

/// Takes one round, as a second one looks at all operations again and finds
/// next to nothing. It leaves out what simplifies regions of several blocks,
/// which no program over tensors has, and what takes from an scf.forall a
/// result that nobody uses: threads that update it and read it again would then
/// each need a copy of it.
static std::unique_ptr<Pass> createPlainCanonicalizer() {
  GreedyRewriteConfig config;
  config.setMaxIterations(1);
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(
      config, {"(anonymous namespace)::ForallOpIterArgsFolder"});
}

void addSpmdPlacement(OpPassManager &passes,
                      const SpmdPipelineOptions &options) {
  passes.addPass(createInlineCalls({options.entry}));
  passes.addPass(createConvertElementwiseToLinalgPass());
  if (options.attention)
    passes.addPass(createNameAttention());
  passes.addPass(createNameProducts());
  passes.addPass(createDecomposeTensors());
  passes.addPass(createConvertTensorToLinalgPass());
  passes.addPass(createFuseElementwise());
  passes.addPass(createPlainCanonicalizer());
  passes.addPass(createMergeEqual());
  passes.addPass(createHoistInvariants());
  passes.addPass(createFillSplats());
  passes.addPass(createPlaceArguments({options.entry, options.devices}));
  passes.addPass(createKeepLoopBuffers());
}

bool hasOtherFunctions(ModuleOp module) {
  return !llvm::hasSingleElement(module.getOps<func::FuncOp>());
}

bool hasInsertions(ModuleOp module) {
  return module
      .walk([](SubsetInsertionOpInterface) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

void addSpmdBufferization(OpPassManager &passes,
                          const SpmdPipelineOptions &pipeline,
                          bool insertions) {
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  options.allowReturnAllocsFromLoops = true;
  passes.addPass(createCheckBufferizable());
  passes.addPass(createSeparateReads());
  if (insertions)
    passes.addPass(bufferization::createEmptyTensorEliminationPass());
  passes.addPass(std::make_unique<EmptyToAllocTensor>());
  passes.addPass(bufferization::createOneShotBufferizePass(options));
  passes.addPass(createForallToParallelLoopPass());
  passes.addPass(createPlainCanonicalizer());
  passes.addPass(createMergeEqual());
  passes.addPass(createConvertSpmdToMgpu({pipeline.entry}));
  passes.addPass(createPlainCanonicalizer());
}

void buildSpmdPipeline(OpPassManager &passes,
                       const SpmdPipelineOptions &options) {
  addSpmdFrontEnds(passes, options);
  addSpmdPlacement(passes, options);
  addSpmdBufferization(passes, options);
}

bool hasTosa(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isa_and_nonnull<tosa::TosaDialect>(op->getDialect())
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

bool isTensorProgram(func::FuncOp function) {
  auto hasTensors = [](TypeRange types) {
    return llvm::any_of(types, llvm::IsaPred<TensorType>);
  };
  if (mpmd::topologyOf(function))
    return true;
  return function
      .walk([&](Operation *op) {
        auto inner = dyn_cast<func::FuncOp>(op);
        return hasTensors(op->getResultTypes()) ||
                       (inner && hasTensors(inner.getArgumentTypes()))
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void registerTensorDialects(DialectRegistry &registry) {
  registry
      .insert<bufferization::BufferizationDialect, linalg::LinalgDialect,
              mpmd::MpmdDialect, sdy::SdyDialect, shard::ShardDialect,
              spmd::SpmdDialect, tensor::TensorDialect, tosa::TosaDialect>();
  stablehlo::registerDialects(registry);
  arith::registerBufferizableOpInterfaceExternalModels(registry);
  bufferization::func_ext::registerBufferizableOpInterfaceExternalModels(
      registry);
  linalg::registerBufferizableOpInterfaceExternalModels(registry);
  linalg::registerSubsetOpInterfaceExternalModels(registry);
  scf::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerBufferizableOpInterfaceExternalModels(registry);
  tensor::registerInferTypeOpInterfaceExternalModels(registry);
  tensor::registerSubsetOpInterfaceExternalModels(registry);
  spmd::registerBufferization(registry);
}

} // namespace mgpu::conversion
