// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes what a kernel computes around its product as two functions of the
// product's text: one begins a sum, the other goes on with it.
#include "kernels/cuda/CudaTypes.h"
#include "kernels/cuda/EntryText.h"
#include "kernels/cuda/FunctionEmitter.h"
#include "kernels/cuda/PartText.h"
#include "kernels/cuda/ProductBody.h"
#include "kernels/cuda/ProductText.h"
#include "kernels/lower/Normalise.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// The function "first" or "last" of what is around the product, and the words
/// that call it. `types` are those of the kernel's arguments that it uses.
LogicalResult ProductText::emitPart(func::FuncOp part, StringRef which,
                                    KernelContext &context, Text &out,
                                    std::vector<std::string> &types) {
  const bool isLast = which == "last", hasBatch = product.getBatch() > 1;
  const std::string name = kernel.name + "_" + which.str(),
                    ids = hasBatch ? "row, column, batch" : "row, column",
                    result = isLast ? "void" : words["CTYPE"];
  auto call = writePart(
      part, {entry, arguments, types}, result + " " + name,
      hasBatch ? "const int globalY, const int globalX, const int globalZ"
               : "const int globalY, const int globalX",
      context, out);
  if (failed(call))
    return failure();
  if (isLast) {
    words["STORE"] = name + "(" + *call;
    words["END"] = ", " + ids + ")";
  } else {
    words["FIRST"] = name + "(" + *call + ids + ")";
  }
  return success();
}

LogicalResult ProductText::prepareAround() {
  OwningOpRef<ModuleOp> around = splitProduct(loop);
  if (failed(normaliseKernel(*around, options.block)))
    return failure();
  eraseDeadCode(*around);
  const facts::IndexRanges ranges(*around, options.block, options.maxGrid);
  KernelContext context(options.block, ranges);
  context.helpers = helpers;
  Text out;
  std::vector<std::string> types(arguments.size());
  if (product.getOverwrites()) {
    types[product.matrixC().getArgument()] = words["CTYPE"] + " *";
    beginAndStore("0");
  }
  for (const char *which : {"first", "last"})
    if (!product.getOverwrites() &&
        failed(emitPart(
            around->lookupSymbol<func::FuncOp>("product." + std::string(which)),
            which, context, out, types)))
      return failure();
  helpers = context.helpers;
  functions = out.text;
  if (StringRef(functions).contains("#line"))
    functions += ownLine.str(); // from here on the text is its own source
  for (unsigned k = 0; k < arguments.size(); ++k) {
    const bool isFactor = k == product.matrixA().getArgument() ||
                          k == product.matrixB().getArgument();
    std::string type = cType(getElementTypeOrSelf(entry.getArgumentTypes()[k]));
    addParameter(
        k, isFactor && takesMaps ? "const __grid_constant__ MgpuTensorMap "
           : isFactor            ? "const " + type + " *"
           : types[k].empty()
               ? "const " + type +
                     (isa<MemRefType>(entry.getArgumentTypes()[k]) ? " *" : " ")
               : types[k]);
  }
  words["WHAT"] = a + " * " + b;
  words["WHAT"] =
      product.getOverwrites()
          ? arguments[product.matrixC().getArgument()] + " = " + words["WHAT"]
          : words["WHAT"] + ", from " + kernel.name + "_first on to " +
                kernel.name + "_last";
  return success();
}

} // namespace mgpu::kernels::cuda
