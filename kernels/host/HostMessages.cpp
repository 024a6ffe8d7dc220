// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/host/HostMessages.h"

#include "kernels/lower/KernelStop.h"
#include "kernels/lower/PrintfFormat.h"

#include "dialect/mgpu/Diagnostics.h"
#include "dialect/mgpu/MgpuDialect.h"
#include "kernels/abi/HostKernelAbi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/StringExtras.h"

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

} // namespace

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

} // namespace mgpu::kernels
