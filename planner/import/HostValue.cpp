// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/HostValue.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

namespace mgpu::planner {

std::optional<ElementType> elementTypeOf(mlir::Type type) {
  if (type.isIndex())
    return ElementType::Index;
  // Signed and unsigned ones would need reductions and files of their own.
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(type);
      integer && integer.isSignless()) {
    switch (integer.getWidth()) {
    case 1:
      return ElementType::I1;
    case 8:
      return ElementType::I8;
    case 16:
      return ElementType::I16;
    case 32:
      return ElementType::I32;
    case 64:
      return ElementType::I64;
    }
    return std::nullopt;
  }
  if (type.isF16())
    return ElementType::F16;
  if (type.isBF16())
    return ElementType::BF16;
  if (type.isF32())
    return ElementType::F32;
  if (type.isF64())
    return ElementType::F64;
  if (mlir::isa<mlir::Float8E4M3FNType>(type))
    return ElementType::F8E4M3FN;
  if (mlir::isa<mlir::Float8E5M2Type>(type))
    return ElementType::F8E5M2;
  return std::nullopt;
}

std::string textOf(mlir::Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

} // namespace mgpu::planner
