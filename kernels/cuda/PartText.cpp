// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/PartText.h"

#include "kernels/cuda/FunctionEmitter.h"

#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

/// Unused arguments go; the positions of the others.
static SmallVector<unsigned> dropUnused(func::FuncOp part, unsigned count) {
  SmallVector<unsigned> kept;
  llvm::BitVector unused(part.getNumArguments());
  for (unsigned k = 0; k < count; ++k)
    if (part.getArgument(k).use_empty())
      unused.set(k);
    else
      kept.push_back(k);
  (void)part.eraseArguments(unused);
  return kept;
}

FailureOr<std::string> writePart(func::FuncOp part, PartOf of,
                                 const std::string &beginning,
                                 const std::string &ids, KernelContext &context,
                                 Text &out) {
  const size_t others = part.getNumArguments() - of.arguments.size();
  SmallVector<unsigned> kept = dropUnused(part, unsigned(of.arguments.size()));
  FunctionEmitter emitter(context, out);
  emitter.setGlobals(true);
  auto parameters = emitter.parameters(part);
  if (failed(parameters))
    return failure();
  if (parameters->size() != kept.size() + others)
    return part.emitOpError("has an argument that is not a single value");
  std::string list, call;
  for (const auto &[type, name] : *parameters)
    list += type + name + ", ";
  for (auto [k, position] : llvm::enumerate(kept)) {
    const std::string &type = (*parameters)[k].type;
    // The function is given the first element.
    auto memref = dyn_cast<MemRefType>(of.entry.getArgumentTypes()[position]);
    SmallVector<int64_t> strides;
    int64_t offset = 0;
    if (memref)
      (void)memref.getStridesAndOffset(strides, offset);
    call += of.arguments[position] +
            (offset ? " + " + std::to_string(offset) + "LL" : "") + ", ";
    std::string &known = of.types[position];
    if (known.empty() || !memref || !StringRef(type).starts_with("const "))
      known = type;
  }
  out.atNowhere();
  out.open("static __device__ __forceinline__ " + beginning + "(" + list + ids +
           ")");
  if (failed(emitter.body(part)))
    return failure();
  out.atNowhere();
  out.close();
  out.line("");
  return call;
}

} // namespace mgpu::kernels::cuda
