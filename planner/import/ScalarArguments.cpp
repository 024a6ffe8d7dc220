// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/ScalarArguments.h"

#include "dialect/mgpu/Diagnostics.h"
#include "planner/import/HostValue.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mgpu::planner {

using namespace mlir;

Result<Attribute> parseScalar(Type type, ElementType element,
                              const std::string &text) {
  Array value{element, {}, std::vector<std::byte>(sizeBytes(element))};
  if (NumberText outcome = parseNumber(text, element, value.bytes.data());
      outcome != NumberText::Stored)
    return fail(ErrorKind::Usage, whyNotStored(outcome, text, element));
  if (isa<FloatType>(type))
    return FloatAttr::get(type, loadNumber(value, 0)); // exact
  uint64_t bits = 0; // little-endian, as all machines that this runs on
  std::copy(value.bytes.begin(), value.bytes.end(),
            reinterpret_cast<std::byte *>(&bits));
  const unsigned width =
      type.isIndex() ? 64u : cast<IntegerType>(type).getWidth();
  return IntegerAttr::get(type, llvm::APInt(64, bits).trunc(width));
}

const std::string *findText(const ArgumentTexts &texts, const std::string &name,
                            unsigned index) {
  for (const std::string &key : {name, std::to_string(index)})
    if (auto at = texts.find(key); at != texts.end())
      return &at->second;
  return nullptr;
}

std::string argumentName(func::FuncOp function, unsigned index) {
  if (auto name = function.getArgAttrOfType<StringAttr>(index, "mgpu.name"))
    return name.str();
  return nameOf(function.getArgument(index).getLoc(), std::to_string(index));
}

void setRoles(func::FuncOp function, const ArgumentTexts &roles) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (auto *role = findText(roles, argumentName(function, index), index))
      function.setArgAttr(index, "mgpu.role",
                          StringAttr::get(function.getContext(), *role));
}

void foldScalars(func::FuncOp function, const ArgumentTexts &values) {
  OpBuilder b(function.getBody());
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (!argument.getType().isSignlessIntOrIndex())
      continue;
    auto role = function.getArgAttrOfType<StringAttr>(index, "mgpu.role");
    const std::string *text =
        findText(values, argumentName(function, index), index);
    if (!text || (role && role == "dynamic"))
      continue;
    auto element = elementTypeOf(argument.getType());
    if (!element)
      continue;
    if (auto value = parseScalar(argument.getType(), *element, *text))
      argument.replaceAllUsesWith(arith::ConstantOp::create(
          b, argument.getLoc(), cast<TypedAttr>(*value)));
  }
}

} // namespace mgpu::planner
