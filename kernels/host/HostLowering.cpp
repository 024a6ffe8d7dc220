// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/abi/HostKernelAbi.h"
#include "kernels/host/BlockEmitter.h"
#include "kernels/host/HostCodegen.h"
#include "kernels/host/SmallFloats.h"
#include "kernels/lower/KernelDialects.h"
#include "kernels/lower/KernelPrepare.h"
#include "kernels/lower/PrintfFormat.h"

#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/TargetParser/Host.h"

#include <cmath>

using namespace mlir;

namespace mgpu::kernels {

namespace {

class Lowering {
public:
  explicit Lowering(ModuleOp module) : module(module), b(module.getContext()) {}

  LogicalResult lower(gpu::PrintfOp op);
  void lower(cf::AssertOp op);

private:
  /// The address of `text` in the module, at the builder's place.
  Value addressOf(StringRef text, Location loc);
  LLVM::LLVMFunctionType printfType();

  ModuleOp module;
  OpBuilder b;
  unsigned numTexts = 0;
};

Value Lowering::addressOf(StringRef text, Location loc) {
  std::string whole = text.str() + '\0';
  std::string name = "mgt_text_" + std::to_string(numTexts++);
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  LLVM::GlobalOp::create(top, loc,
                         LLVM::LLVMArrayType::get(b.getI8Type(), whole.size()),
                         /*isConstant=*/true, LLVM::Linkage::Internal, name,
                         b.getStringAttr(whole));
  return LLVM::AddressOfOp::create(
      b, loc, LLVM::LLVMPointerType::get(b.getContext()), name);
}

LLVM::LLVMFunctionType Lowering::printfType() {
  auto type = LLVM::LLVMFunctionType::get(
      b.getI32Type(), {LLVM::LLVMPointerType::get(b.getContext())},
      /*isVarArg=*/true);
  if (!module.lookupSymbol("printf")) {
    OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
    LLVM::LLVMFuncOp::create(top, module.getLoc(), "printf", type);
  }
  return type;
}

/// C promotes variadic arguments.
LogicalResult Lowering::lower(gpu::PrintfOp op) {
  Location loc = op.getLoc();
  FailureOr<std::string> format = checkedFormat(op);
  if (failed(format))
    return failure();
  b.setInsertionPoint(op);
  SmallVector<Value> operands{addressOf(*format, loc)};
  for (Value value : op.getArgs()) {
    Type given = value.getType();
    if (given.isIndex())
      value = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    else if (isa<FloatType>(given) && given.getIntOrFloatBitWidth() < 64)
      value = arith::ExtFOp::create(b, loc, b.getF64Type(), value);
    else if (given.isInteger(1))
      value = arith::ExtUIOp::create(b, loc, b.getI32Type(), value);
    else if (unsigned width = given.getIntOrFloatBitWidth(); width < 32)
      value = arith::ExtSIOp::create(b, loc, b.getI32Type(), value);
    else if (width > 32 && width < 64)
      value = arith::ExtSIOp::create(b, loc, b.getI64Type(), value);
    operands.push_back(value);
  }
  LLVM::CallOp::create(b, loc, printfType(), "printf", operands);
  op.erase();
  return success();
}

void Lowering::lower(cf::AssertOp op) {
  Location loc = op.getLoc();
  std::string sentence = op.getMsg().str();
  if (!ir::hasMark(op, ir::Mark::Sentence)) {
    constexpr size_t longest = 500; // the handler has room for a few paths more
    std::string message = sentence.substr(0, longest);
    for (char &c : message)
      if (llvm::isSpace(c) || c == '\0')
        c = ' '; // one line of text
    sentence =
        "fails its assertion '" + message + "' at " + ir::describeLocation(loc);
  }
  b.setInsertionPoint(op);
  Value fails = arith::XOrIOp::create(
      b, loc, op.getArg(),
      arith::ConstantOp::create(b, loc, b.getBoolAttr(true)));
  auto branch = scf::IfOp::create(b, loc, fails, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  std::string bytes;
  for (unsigned char byte : hostKernelStop)
    bytes += (bytes.empty() ? ".byte " : ", ") + std::to_string(byte);
  LLVM::InlineAsmOp::create(
      b, loc, TypeRange(), addressOf(sentence, loc), bytes, "{rdi}",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  op.erase();
}

/// gpu.printf becomes C's printf; cf.assert, where it fails, what a handler of
/// SIGILL finds the sentence by (hostKernelStop of HostKernelAbi.h).
LogicalResult lowerMessages(ModuleOp module) {
  SmallVector<gpu::PrintfOp> prints;
  SmallVector<cf::AssertOp> checks;
  module.walk([&](Operation *op) {
    if (auto print = dyn_cast<gpu::PrintfOp>(op))
      prints.push_back(print);
    if (auto check = dyn_cast<cf::AssertOp>(op))
      checks.push_back(check);
  });
  Lowering lowering(module);
  for (gpu::PrintfOp print : prints)
    if (failed(lowering.lower(print)))
      return failure();
  for (cf::AssertOp check : checks)
    lowering.lower(check);
  return success();
}

/// Whether memref.atomic_rmw becomes LLVM's atomicrmw with the same meaning.
bool isOneInstruction(memref::AtomicRMWOp op) {
  Type type = op.getValue().getType();
  switch (op.getKind()) {
  case arith::AtomicRMWKind::addf:
    return type.isF32() || type.isF64();
  case arith::AtomicRMWKind::addi:
  case arith::AtomicRMWKind::andi:
  case arith::AtomicRMWKind::assign:
  case arith::AtomicRMWKind::maxs:
  case arith::AtomicRMWKind::maxu:
  case arith::AtomicRMWKind::mins:
  case arith::AtomicRMWKind::minu:
  case arith::AtomicRMWKind::ori:
  case arith::AtomicRMWKind::xori:
    return type.isInteger(8) || type.isInteger(16) || type.isInteger(32) ||
           type.isInteger(64);
  default:
    return false;
  }
}

void makeGeneric(memref::AtomicRMWOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto generic = memref::GenericAtomicRMWOp::create(b, loc, op.getMemref(),
                                                    op.getIndices());
  b.setInsertionPointToEnd(generic.getBody());
  Value result =
      op.getKind() == arith::AtomicRMWKind::assign
          ? op.getValue()
          : arith::getReductionOp(op.getKind(), b, loc,
                                  generic.getCurrentValue(), op.getValue());
  memref::AtomicYieldOp::create(b, loc, result);
  op.replaceAllUsesWith(generic.getResult());
  op.erase();
}

/// The address of an element as an LLVM pointer.
Value addressOf(OpBuilder &b, Location loc, memref::GenericAtomicRMWOp op,
                IntegerType bits) {
  auto metadata =
      memref::ExtractStridedMetadataOp::create(b, loc, op.getMemref());
  Value element = metadata.getOffset();
  for (auto [index, stride] :
       llvm::zip_equal(op.getIndices(), metadata.getStrides()))
    element = arith::AddIOp::create(
        b, loc, element, arith::MulIOp::create(b, loc, index, stride));
  Type i64 = b.getI64Type();
  Value base =
      memref::ExtractAlignedPointerAsIndexOp::create(b, loc, op.getMemref());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  base = LLVM::IntToPtrOp::create(
      b, loc, pointer,
      arith::IndexCastOp::create(b, loc, i64, base).getResult());
  Value distance = arith::IndexCastOp::create(b, loc, i64, element);
  return LLVM::GEPOp::create(b, loc, pointer, bits, base,
                             ArrayRef<LLVM::GEPArg>{distance});
}

LogicalResult lowerGeneric(memref::GenericAtomicRMWOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type type = op.getResult().getType();
  unsigned width = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  if (width != 1 && width != 8 && width != 16 && width != 32 && width != 64)
    return op.emitOpError() << "on elements of " << type
                            << " is not supported on the host target; it takes "
                               "elements of 1, 8, 16, 32 or 64 bits";
  // An i1 is a byte in memory, 0 or 1.
  IntegerType bits = b.getIntegerType(std::max(width, 8u));
  auto toBits = [&](Value value) -> Value {
    if (width == 1)
      return arith::ExtUIOp::create(b, loc, bits, value);
    return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, bits, value)
                                : value;
  };
  auto fromBits = [&](Value value) -> Value {
    if (width == 1)
      return arith::TruncIOp::create(b, loc, type, value);
    return isa<FloatType>(type) ? arith::BitcastOp::create(b, loc, type, value)
                                : value;
  };
  Value address = addressOf(b, loc, op, bits);
  Value first = LLVM::LoadOp::create(
      b, loc, bits, address, bits.getWidth() / 8, /*isVolatile=*/false,
      /*isNonTemporal=*/false, /*isInvariant=*/false,
      /*isInvariantGroup=*/false, LLVM::AtomicOrdering::monotonic);
  auto loop = scf::WhileOp::create(b, loc, TypeRange{bits}, ValueRange{first});
  b.createBlock(&loop.getBefore(), {}, {bits}, {loc});
  Value expected = loop.getBefore().getArgument(0);
  IRMapping map;
  map.map(op.getCurrentValue(), fromBits(expected));
  for (Operation &inner : op.getBody()->without_terminator())
    b.clone(inner, map);
  Value next =
      toBits(map.lookupOrDefault(op.getBody()->getTerminator()->getOperand(0)));
  Value exchanged = LLVM::AtomicCmpXchgOp::create(
      b, loc, address, expected, next, LLVM::AtomicOrdering::acq_rel,
      LLVM::AtomicOrdering::monotonic);
  Value found = LLVM::ExtractValueOp::create(b, loc, exchanged, 0);
  Value done = LLVM::ExtractValueOp::create(b, loc, exchanged, 1);
  Value again = arith::XOrIOp::create(
      b, loc, done, arith::ConstantIntOp::create(b, loc, 1, 1));
  scf::ConditionOp::create(b, loc, again, found);
  b.createBlock(&loop.getAfter(), {}, {bits}, {loc});
  scf::YieldOp::create(b, loc, loop.getAfter().getArgument(0));
  b.setInsertionPointAfter(loop);
  op.replaceAllUsesWith(fromBits(loop.getResult(0)));
  op.erase();
  return success();
}

/// Turns memref.generic_atomic_rmw, and each memref.atomic_rmw that is not a
/// single instruction of LLVM's, into loops that compare and exchange. To be
/// run while arith is there: MLIR's own lowering takes no body but an empty
/// one. Elements have 8, 16, 32 or 64 bits; others are an error at the op.
LogicalResult lowerAtomics(ModuleOp module) {
  SmallVector<memref::AtomicRMWOp> compound;
  module.walk([&](memref::AtomicRMWOp op) {
    if (!isOneInstruction(op))
      compound.push_back(op);
  });
  llvm::for_each(compound, makeGeneric);
  SmallVector<memref::GenericAtomicRMWOp> generic;
  module.walk([&](memref::GenericAtomicRMWOp op) { generic.push_back(op); });
  return success(llvm::all_of(generic, [](memref::GenericAtomicRMWOp op) {
    return succeeded(lowerGeneric(op));
  }));
}

} // namespace

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

/// Whether vectors that the emitter made are multiplied and added.
static bool hasVectorProducts(ModuleOp module) {
  return module
      .walk([](math::FmaOp op) {
        return isa<VectorType>(op.getType()) ? WalkResult::interrupt()
                                             : WalkResult::advance();
      })
      .wasInterrupted();
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
  const bool hasProducts = hasVectorProducts(module);
  if ((expandFunctions(module) || hasProducts) &&
      hasFeature(code.cpu, "avx512vl"))
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
