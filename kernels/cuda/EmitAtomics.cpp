// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

LogicalResult FunctionEmitter::emitAtomic(memref::AtomicRMWOp op) {
  using Kind = arith::AtomicRMWKind;
  Type type = op.getValue().getType();
  unsigned width = widthOf(type);
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  std::string at = "&" + element(op.getMemref(), op.getIndices());
  std::string value = use(op.getValue());
  auto builtin = [&](StringRef name, const std::string &as) {
    // CUDA has them for int, unsigned, unsigned long long, float and double.
    std::string call = name.str() + "(" +
                       (as.empty() ? at : "(" + as + " *)(" + at + ")") + ", " +
                       (as.empty() ? "" : "(" + as + ")") + value + ")";
    bind(op.getResult(),
         as.empty() ? call : "(" + typeOf(op.getResult()) + ")" + call);
    return success();
  };
  std::string word = width == 64 ? "unsigned long long" : "unsigned";
  bool isInteger = type.isIntOrIndex() && width >= 32;
  switch (op.getKind()) {
  case Kind::addi:
    if (isInteger)
      return builtin("atomicAdd", word);
    break;
  case Kind::addf:
    if (width >= 32)
      return builtin("atomicAdd", "");
    break;
  case Kind::andi:
    if (isInteger)
      return builtin("atomicAnd", word);
    break;
  case Kind::ori:
    if (isInteger)
      return builtin("atomicOr", word);
    break;
  case Kind::xori:
    if (isInteger)
      return builtin("atomicXor", word);
    break;
  case Kind::maxs:
    if (isInteger)
      return builtin("atomicMax", cType(type));
    break;
  case Kind::mins:
    if (isInteger)
      return builtin("atomicMin", cType(type));
    break;
  case Kind::maxu:
    if (isInteger)
      return builtin("atomicMax", word);
    break;
  case Kind::minu:
    if (isInteger)
      return builtin("atomicMin", word);
    break;
  default:
    break;
  }
  std::string old = "old";
  std::string next;
  switch (op.getKind()) {
  case Kind::assign:
    next = value;
    break;
  case Kind::addi:
  case Kind::addf:
    next =
        width == 1 ? old + " != " + value : narrow(type, old + " + " + value);
    break;
  case Kind::muli:
    if (width == 1) {
      next = old + " & " + value;
      break;
    }
    next = "(" + cType(type) + ")((" + unsignedType(type) + ")" + old + " * (" +
           unsignedType(type) + ")" + value + ")";
    break;
  case Kind::mulf:
    next = narrow(type, old + " * " + value);
    break;
  case Kind::andi:
    next = old + " & " + value;
    break;
  case Kind::ori:
    next = old + " | " + value;
    break;
  case Kind::xori:
    next = old + " ^ " + value;
    break;
  case Kind::maxs: // -1 is the signed value of a true i1
    next = width == 1 ? old + " & " + value
                      : old + " > " + value + " ? " + old + " : " + value;
    break;
  case Kind::mins:
    next = width == 1 ? old + " | " + value
                      : old + " < " + value + " ? " + old + " : " + value;
    break;
  case Kind::maxu:
  case Kind::minu: {
    std::string cast = "(" + unsignedType(type) + ")";
    next = cast + old + (op.getKind() == Kind::maxu ? " > " : " < ") + cast +
           value + " ? " + old + " : " + value;
    break;
  }
  case Kind::maximumf:
    next = helper("maximum") + "(" + old + ", " + value + ")";
    break;
  case Kind::minimumf:
    next = helper("minimum") + "(" + old + ", " + value + ")";
    break;
  case Kind::maxnumf:
    next = narrow(type, std::string(type.isF64() ? "fmax(" : "fmaxf(") + old +
                            ", " + value + ")");
    break;
  case Kind::minnumf:
    next = narrow(type, std::string(type.isF64() ? "fmin(" : "fminf(") + old +
                            ", " + value + ")");
    break;
  default:
    return refuse(op, " of this kind");
  }
  std::string t = cType(type);
  bind(op.getResult(), helper("atomicUpdate") + "<" + t + ">(" + at + ", [&](" +
                           t + " old) -> " + t + " { return " + next + "; })");
  return success();
}

LogicalResult
FunctionEmitter::emitGenericAtomic(memref::GenericAtomicRMWOp op) {
  Type type = op.getResult().getType();
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  std::string function;
  if (failed(emitCombiner(op.getRegion(), op, function)))
    return failure();
  bind(op.getResult(), helper("atomicUpdate") + "<" + cType(type) + ">(&" +
                           element(op.getMemref(), op.getIndices()) + ", " +
                           function + ")");
  return success();
}

} // namespace mgpu::kernels::cuda
