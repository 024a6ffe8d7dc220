// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/SourceKernel.h"

#include "kernels/cuda/CudaTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace mgpu::kernels {

using P = planner::KernelParameter;

static DictionaryAttr sourceOf(ModuleOp kernel) {
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (!entry || !entry.isDeclaration())
    return {};
  return entry->getAttrOfType<DictionaryAttr>("mgpu.cuda_source");
}

static std::string wordOf(DictionaryAttr source, StringRef name) {
  auto word = source.getAs<StringAttr>(name);
  return word ? word.str() : std::string();
}

static std::vector<planner::KernelTunable> tunablesOf(DictionaryAttr source) {
  std::vector<planner::KernelTunable> tunables;
  if (auto all = source.getAs<DictionaryAttr>("tunables"))
    for (NamedAttribute each : all)
      if (auto values = dyn_cast<DenseI64ArrayAttr>(each.getValue());
          values && !values.empty() &&
          tunables.size() < planner::mostKernelTunables)
        tunables.push_back(
            {each.getName().str(),
             {values.asArrayRef().begin(), values.asArrayRef().end()}});
  return tunables;
}

static std::string reasonOf(DictionaryAttr source) {
  return "keeps its launch: CUDA C++ of its own, '" + wordOf(source, "file") +
         "'";
}

bool isSourceKernel(ModuleOp kernel) { return bool(sourceOf(kernel)); }

Result<void> takeReference(ModuleOp kernel) {
  DictionaryAttr source = sourceOf(kernel);
  auto reference = kernel.lookupSymbol<func::FuncOp>("mgpu.reference");
  if (!reference)
    return fail(ErrorKind::Unsupported,
                "'" + wordOf(source, "entry") + "' is CUDA C++ in '" +
                    wordOf(source, "file") +
                    "', which the host target cannot run; use --target cuda, "
                    "write the kernel as the launch's body, or name a function "
                    "that computes the same as its 'reference'");
  auto entry = kernel.lookupSymbol<func::FuncOp>("entry");
  if (Attribute bytes = entry->getAttr("mgpu.dynamic_shared_bytes"))
    reference->setAttr("mgpu.dynamic_shared_bytes", bytes);
  entry.erase();
  reference.setName("entry");
  reference.setPublic();
  return {};
}

Result<CudaKernel> emitSourceKernel(ModuleOp module,
                                    const CudaEmitOptions &options) {
  DictionaryAttr source = sourceOf(module);
  auto function = module.lookupSymbol<func::FuncOp>("entry");
  CudaKernel kernel;
  kernel.name = options.name;
  kernel.image.entry = wordOf(source, "entry");
  kernel.image.takesPart = false;
  kernel.image.sourceBlock = options.block;
  kernel.reason = reasonOf(source);
  kernel.vectorReason = "is CUDA C++ of its own";
  if (auto bytes =
          function->getAttrOfType<IntegerAttr>("mgpu.dynamic_shared_bytes"))
    kernel.image.dynamicSharedBytes = uint32_t(bytes.getInt());
  for (auto [k, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    Type element = memref ? memref.getElementType() : type;
    std::string text = cuda::cType(element);
    if (text.empty() || (!memref && !element.isIntOrIndexOrFloat())) {
      std::string message;
      llvm::raw_string_ostream(message)
          << "argument " << k << " has type " << type
          << ", which CUDA C++ does not have";
      return fail(ErrorKind::Unsupported, message);
    }
    kernel.parameters.push_back(
        {"p" + std::to_string(k), memref ? text + " *" : text});
    kernel.image.parameterBytes.push_back(
        memref ? 8 : std::max(cuda::widthOf(element), 8u) / 8);
  }
  for (const auto &[name, values] : tunablesOf(source))
    kernel.image.blob += "#ifndef " + name + "\n#define " + name + " " +
                         std::to_string(values.front()) + "\n#endif\n";
  kernel.image.blob += "#line 1 " + cuda::quoted(wordOf(source, "file")) +
                       "\n" + wordOf(source, "text");
  if (!StringRef(kernel.image.blob).ends_with("\n"))
    kernel.image.blob += "\n";
  return kernel;
}

planner::KernelSpace sourceKernelSpace(ModuleOp kernel, Dim3 block,
                                       Dim3 maxGrid) {
  DictionaryAttr source = sourceOf(kernel);
  planner::KernelSpace space;
  space.target = planner::KernelTarget::Cuda;
  space.block = block;
  space.maxGrid = maxGrid;
  space.reason = reasonOf(source);
  if (auto bytes = kernel.lookupSymbol("entry")->getAttrOfType<IntegerAttr>(
          "mgpu.dynamic_shared_bytes"))
    space.sharedBytes = uint32_t(bytes.getInt());
  space.tunables = tunablesOf(source);
  space.defaults[P::BlockX] = block.x;
  space.defaults[P::BlockY] = block.y;
  space.defaults[P::BlockZ] = block.z;
  space.defaults[P::Vector] = 1;
  for (const planner::KernelTunable &tunable : space.tunables)
    space.defaults.tunables[space.defaults.numTunables++] =
        tunable.values.front();
  for (size_t k = 0; k < planner::numKernelParameters; ++k)
    space.choices.push_back({P(k), {space.defaults[P(k)]}, space.reason});
  return space;
}

} // namespace mgpu::kernels
