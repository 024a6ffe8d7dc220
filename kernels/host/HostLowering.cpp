// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostCodegen.h"

#include "kernels/host/Atomics.h"
#include "kernels/host/BlockEmitter.h"
#include "kernels/host/HostMessages.h"
#include "kernels/host/SmallFloats.h"
#include "kernels/lower/KernelPrepare.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/TargetParser/Host.h"

#include <cmath>

using namespace mlir;

namespace mgpu::kernels {

bool hasFeature(const std::string &cpu, llvm::StringRef feature) {
  if (cpu == "native")
    return llvm::sys::getHostCPUFeatures().lookup(feature);
  const bool isOfV4 = feature.starts_with("avx512");
  return isOfV4 ? cpu == "x86-64-v4" : cpu != "x86-64-v2";
}

/// Has the patterns that `add` gives rewrite every operation of these kinds.
template <typename... Ops>
static LogicalResult
rewriteAll(ModuleOp module, llvm::function_ref<void(RewritePatternSet &)> add) {
  ConversionTarget target(*module.getContext());
  target.addIllegalOp<Ops...>();
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  RewritePatternSet patterns(module.getContext());
  add(patterns);
  return applyPartialConversion(module, target, std::move(patterns));
}

/// To calls of the C library: MLIR's own lowering computes e^x - 1 and
/// log(1 + x), which of a small x have no correct digit.
static LogicalResult lowerNearOne(ModuleOp module) {
  return rewriteAll<math::ExpM1Op, math::Log1pOp>(
      module, [](RewritePatternSet &patterns) {
        populateMathToLibmConversionPatterns(patterns);
      });
}

/// maxnumf and minnumf as maximumf and minimumf of what is a number: of two
/// zeros +0 is the larger, as on GPUs. MLIR leaves that open.
static void expandNumberOnly(ModuleOp module) {
  module.walk([](Operation *op) {
    if (!isa<arith::MaxNumFOp, arith::MinNumFOp>(op))
      return;
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value x = op->getOperand(0), y = op->getOperand(1), both;
    if (isa<arith::MaxNumFOp>(op))
      both = arith::MaximumFOp::create(b, loc, x, y);
    else
      both = arith::MinimumFOp::create(b, loc, x, y);
    auto select = [&](Value ifNaN, Value other, Value otherwise) -> Value {
      Value isNaN = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO,
                                          ifNaN, ifNaN);
      return arith::SelectOp::create(b, loc, isNaN, other, otherwise);
    };
    op->getResult(0).replaceAllUsesWith(select(x, y, select(y, x, both)));
    op->erase();
  });
}

/// x where it is beyond the constant c, c where not; NaN stays. Null where `c`
/// is no constant.
static Value beyondConstant(ImplicitLocOpBuilder &b, bool isMost, Value x,
                            Value c) {
  APFloat value(0.0);
  if (!matchPattern(c, m_ConstantFloat(&value)) || value.isNaN())
    return {};
  // Two zeros compare as equal: the constant is taken if it is the one beyond.
  const bool wins = !value.isZero() || value.isNegative() != isMost;
  const auto predicate =
      isMost ? wins ? arith::CmpFPredicate::OGE : arith::CmpFPredicate::OGT
      : wins ? arith::CmpFPredicate::OLE
             : arith::CmpFPredicate::OLT;
  Value isBeyond = arith::CmpFOp::create(b, predicate, c, x);
  return arith::SelectOp::create(b, isBeyond, c, x);
}

/// maximumf and minimumf by two comparisons, which processors have as one
/// operation each and which differ in zeros' signs alone: the bits of both
/// together are those of the zero that is wanted. LLVM's own lowering chooses
/// by the sign of an operand, with branches outside of vectors.
static void expandExtremes(ModuleOp module) {
  module.walk([](Operation *op) {
    const bool isMost = isa<arith::MaximumFOp>(op);
    if (!isMost && !isa<arith::MinimumFOp>(op))
      return;
    ImplicitLocOpBuilder b(op->getLoc(), op);
    Value x = op->getOperand(0), y = op->getOperand(1);
    Value result = beyondConstant(b, isMost, x, y);
    if (!result)
      result = beyondConstant(b, isMost, y, x);
    if (!result) {
      Type bits = b.getIntegerType(
          getElementTypeOrSelf(x.getType()).getIntOrFloatBitWidth());
      if (auto vector = dyn_cast<VectorType>(x.getType()))
        bits = vector.clone(bits);
      auto chosen = [&](Value one, Value other) -> Value {
        Value isFirst = arith::CmpFOp::create(
            b, isMost ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT,
            one, other);
        return arith::BitcastOp::create(
            b, bits, arith::SelectOp::create(b, isFirst, one, other));
      };
      Value first = chosen(x, y), second = chosen(y, x), both;
      if (isMost)
        both = arith::AndIOp::create(b, first, second);
      else
        both = arith::OrIOp::create(b, first, second);
      Value isNaN = arith::CmpFOp::create(b, arith::CmpFPredicate::UNO, x, y);
      TypedAttr nan = b.getFloatAttr(getElementTypeOrSelf(x.getType()), NAN);
      if (auto vector = dyn_cast<VectorType>(x.getType()))
        nan = DenseElementsAttr::get(vector, Attribute(nan));
      result = arith::SelectOp::create(
          b, isNaN, arith::ConstantOp::create(b, nan),
          arith::BitcastOp::create(b, x.getType(), both));
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  });
}

/// Lowers the operations that round up or down. MLIR's pass for them also makes
/// comparisons of maximumf and minimumf, which do not know that -0 is less than
/// +0; LLVM's own operations do.
static LogicalResult expandDivisions(ModuleOp module) {
  return rewriteAll<arith::CeilDivSIOp, arith::CeilDivUIOp,
                    arith::FloorDivSIOp>(
      module, arith::populateCeilFloorDivExpandOpsPatterns);
}

/// Buffers beyond what a thread's stack has room for are on the heap.
static void moveToHeap(ModuleOp module) {
  constexpr int64_t onStack = int64_t(4) << 20;
  for (auto function : module.getOps<func::FuncOp>()) {
    int64_t bytes = 0;
    for (auto alloca : llvm::to_vector(function.getOps<memref::AllocaOp>())) {
      MemRefType type = alloca.getType();
      const int64_t own = type.getNumElements() * sizeOf(type.getElementType());
      if (bytes + own <= onStack) {
        bytes += own;
        continue;
      }
      OpBuilder b(alloca);
      Value buffer = memref::AllocOp::create(b, alloca.getLoc(), type,
                                             alloca.getAlignmentAttr());
      for (auto end : function.getOps<func::ReturnOp>()) {
        b.setInsertionPoint(end);
        memref::DeallocOp::create(b, alloca.getLoc(), buffer);
      }
      alloca.replaceAllUsesWith(buffer);
      alloca.erase();
    }
  }
}

LogicalResult lowerToLlvm(ModuleOp module, HostCodeOptions &code) {
  if (failed(lowerMessages(module)) || failed(lowerAtomics(module)))
    return failure();
  moveToHeap(module);
  expandNumberOnly(module);
  expandFma(module, /*ofF32=*/false);
  PassManager pm(module.getContext());
  pm.enableVerifier(false); // all of it is verified at the end
  // Small floats are computed in f32 and rounded after each operation: one
  // rounding to at most 11 bits of an f32 sum, product or quotient of values of
  // as many bits is the exact one. f16 is among them on every CPU, that the
  // few with arithmetic of their own give no other bits.
  pm.addPass(math::createMathExtendToSupportedTypes());
  arith::ArithEmulateUnsupportedFloatsOptions emulate;
  emulate.sourceTypeStrs = {"bf16", "f16", "f8E4M3FN", "f8E5M2"};
  emulate.targetTypeStr = "f32";
  pm.addPass(arith::createArithEmulateUnsupportedFloats(emulate));
  if (failed(pm.run(module)))
    return failure();
  // The passes above allow the rounding between two operations to be folded
  // away.
  dropFastMath(module);
  expandExtremes(module);
  if (expandFunctions(module) && hasFeature(code.cpu, "avx512vl"))
    code.vectorBits = 512;
  if (!hasFeature(code.cpu, "fma"))
    expandFma(module, /*ofF32=*/true);
  expandSmallFloats(module, !hasFeature(code.cpu, "f16c"));
  if (failed(lowerNearOne(module)))
    return failure();
  pm.clear();
  // Powers with whole exponents multiply in the order that emitted CUDA C++
  // does; the library's function for them is not the C library's.
  ConvertMathToFuncsOptions powers;
  powers.minWidthOfFPowIExponent = 1;
  pm.addPass(createConvertMathToFuncs(powers));
  if (failed(pm.run(module)) || failed(expandDivisions(module)))
    return failure();
  pm.clear();
  pm.addPass(memref::createExpandOpsPass());
  pm.addPass(createConvertVectorToSCFPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  if (failed(pm.run(module)))
    return failure();
  WalkResult left = module.walk([&](Operation *op) {
    if (op == module.getOperation() || isa<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    InFlightDiagnostic error =
        op->emitOpError("is not supported in a kernel on the host target");
    for (Type type : op->getResultTypes())
      error << ", with a result of type " << type;
    return WalkResult::interrupt();
  });
  return failure(left.wasInterrupted() || failed(verify(module)));
}

} // namespace mgpu::kernels
