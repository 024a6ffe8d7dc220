// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/lower/PrintfFormat.h"

#include "dialect/mgpu/Diagnostics.h"
#include "support/Units.h"

using namespace mlir;

namespace mgpu::kernels {

FailureOr<std::string> checkedFormat(gpu::PrintfOp op) {
  llvm::StringRef format = op.getFormat();
  std::string result;
  unsigned next = 0;
  auto isAny = [](llvm::StringRef of) {
    return [of](char c) { return of.contains(c); };
  };
  auto take = [&](llvm::StringRef of) {
    llvm::StringRef taken = format.take_while(isAny(of));
    format = format.drop_front(taken.size());
    return taken.str();
  };
  while (!format.empty()) {
    char first = format.front();
    format = format.drop_front();
    if (first == '\0')
      return ir::emitProgramError(op)
             << "has a format with a zero byte, where it would end";
    result += first;
    if (first != '%')
      continue;
    if (format.consume_front("%")) {
      result += '%';
      continue;
    }
    result += take("-+ #0");
    result += take("0123456789");
    if (format.consume_front("."))
      result += "." + take("0123456789");
    take("hlLqjzt");
    if (format.empty())
      return ir::emitProgramError(op)
             << "has a format that ends inside a conversion";
    char conversion = format.front();
    format = format.drop_front();
    bool ofInteger = isAny("diouxXc")(conversion);
    if (!ofInteger && !isAny("fFeEgGaA")(conversion))
      return op.emitOpError()
             << "has a format with the conversion '%"
             << llvm::StringRef(&conversion, 1)
             << "', which kernels cannot print; use d, i, o, u, x, X or c for "
                "integers and f, e, g or a for floats";
    if (next == op.getArgs().size())
      return ir::emitProgramError(op)
             << "has a format with more conversions than its "
             << counted(next, "argument");
    Type type = op.getArgs()[next].getType();
    bool isInteger = type.isIndex() || type.isInteger();
    unsigned width = type.isIndex()        ? 64
                     : type.isIntOrFloat() ? type.getIntOrFloatBitWidth()
                                           : 128;
    if (isInteger != ofInteger || width > (conversion == 'c' ? 32 : 64))
      return ir::emitProgramError(op)
             << "has a format that prints argument " << next << ", of type "
             << type << ", by '%" << llvm::StringRef(&conversion, 1) << "'";
    if (isInteger && width > 32)
      result += "ll";
    result += conversion;
    ++next;
  }
  if (next != op.getArgs().size())
    return ir::emitProgramError(op)
           << "has " << counted(op.getArgs().size(), "argument")
           << ", but a format with " << counted(next, "conversion");
  return result;
}

} // namespace mgpu::kernels
