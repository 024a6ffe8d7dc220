// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/FunctionEmitter.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// CUDA's function for the kind, which it has for int, unsigned, unsigned long
/// long, float and double, and the type to cast to for it; empty for none.
static std::pair<StringRef, std::string> builtinOf(arith::AtomicRMWKind kind,
                                                   Type type) {
  using Kind = arith::AtomicRMWKind;
  const unsigned width = widthOf(type);
  if (width < 32)
    return {};
  const std::string word = width == 64 ? "unsigned long long" : "unsigned";
  switch (kind) {
  case Kind::addf:
    return {"atomicAdd", ""};
  case Kind::addi:
    return {"atomicAdd", word};
  case Kind::andi:
    return {"atomicAnd", word};
  case Kind::ori:
    return {"atomicOr", word};
  case Kind::xori:
    return {"atomicXor", word};
  case Kind::maxs:
    return {"atomicMax", cType(type)};
  case Kind::mins:
    return {"atomicMin", cType(type)};
  case Kind::maxu:
    return {"atomicMax", word};
  case Kind::minu:
    return {"atomicMin", word};
  default:
    return {};
  }
}

/// The value that `old` becomes; empty where the kind cannot be emitted.
std::string FunctionEmitter::updated(arith::AtomicRMWKind kind, Type type,
                                     const std::string &value) {
  using Kind = arith::AtomicRMWKind;
  const std::string cast = "(" + unsignedType(type) + ")";
  const bool isBool = widthOf(type) == 1;
  auto choose = [&](const char *sign, const std::string &as) {
    return as + "old" + sign + as + value + " ? old : " + value;
  };
  auto call = [&](const std::string &name) {
    return name + "(old, " + value + ")";
  };
  auto ofWidth = [&](std::string name) {
    return narrow(type, call(name + (type.isF64() ? "" : "f")));
  };
  switch (kind) {
  case Kind::assign:
    return value;
  case Kind::addi:
  case Kind::addf:
    return isBool ? "old != " + value : narrow(type, "old + " + value);
  case Kind::muli:
    return isBool ? "old & " + value
                  : "(" + cType(type) + ")(" + cast + "old * " + cast + value +
                        ")";
  case Kind::mulf:
    return narrow(type, "old * " + value);
  case Kind::andi:
    return "old & " + value;
  case Kind::ori:
    return "old | " + value;
  case Kind::xori:
    return "old ^ " + value;
  case Kind::maxs: // -1 is the signed value of a true i1
    return isBool ? "old & " + value : choose(" > ", "");
  case Kind::mins:
    return isBool ? "old | " + value : choose(" < ", "");
  case Kind::maxu:
    return choose(" > ", cast);
  case Kind::minu:
    return choose(" < ", cast);
  case Kind::maximumf:
    return narrow(type, call(helper("maximum")));
  case Kind::minimumf:
    return narrow(type, call(helper("minimum")));
  case Kind::maxnumf:
    return ofWidth("fmax");
  case Kind::minnumf:
    return ofWidth("fmin");
  default:
    return "";
  }
}

LogicalResult FunctionEmitter::emit(memref::AtomicRMWOp op) {
  Type type = op.getValue().getType();
  if (isa<VectorType>(type))
    return refuse(op, " for vectors");
  std::string at = "&" + element(op.getMemref(), op.getIndices());
  std::string value = use(op.getValue());
  if (auto [name, as] = builtinOf(op.getKind(), type); !name.empty()) {
    std::string call = name.str() + "(" +
                       (as.empty() ? at : "(" + as + " *)(" + at + ")") + ", " +
                       (as.empty() ? "" : "(" + as + ")") + value + ")";
    bind(op, as.empty() ? call : "(" + typeOf(op) + ")" + call);
    return success();
  }
  std::string next = updated(op.getKind(), type, value);
  if (next.empty())
    return refuse(op, " of this kind");
  std::string t = cType(type);
  bind(op, helper("atomicUpdate") + "<" + t + ">(" + at + ", [&](" + t +
               " old) -> " + t + " { return " + next + "; })");
  return success();
}

LogicalResult FunctionEmitter::emit(memref::GenericAtomicRMWOp op) {
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
