// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/dag/KernelSpec.h"

#include "support/JsonFields.h"

namespace mgpu::planner {

void fields(JsonFields &f, KernelTunable &tunable) {
  f("name", tunable.name);
  f("values", tunable.values);
  f.require(!tunable.values.empty(), "values");
}

static void fields(JsonFields &f, CudaFile::Parameter &parameter) {
  f("type", parameter.type);
  f("is_pointer", parameter.isPointer);
}

void fields(JsonFields &f, CudaFile &kernel) {
  f("file", kernel.file);
  f("entry", kernel.entry);
  f("parameters", kernel.parameters);
  f("tunables", kernel.tunables);
  f.require(kernel.tunables.size() <= mostKernelTunables, "tunables");
  f("dynamic_shared_bytes", kernel.dynamicSharedBytes);
  if (f.reads() || !kernel.rules.empty())
    f.added("rules", kernel.rules);
  if (f.reads() || kernel.call)
    f.added("call", kernel.call);
}

/// Whether a custom call is one of LAPACK, cuSOLVER or hipSOLVER.
static bool isFactorisation(std::string_view call) {
  for (std::string_view library : {"lapack_", "cusolver_", "hipsolver_"})
    if (call.starts_with(library))
      return true;
  return false;
}

Result<const std::string *> KernelSpec::hostText() const {
  if (auto *module = std::get_if<MlirKernel>(&source))
    return &module->text;
  const CudaFile *file = cudaFile();
  if (!file)
    return fail(ErrorKind::Invalid, "kernel " + name + " has no source");
  if (!file->reference.empty())
    return &file->reference;
  if (file->isOpaque() && isFactorisation(file->entry))
    return fail(ErrorKind::Unsupported,
                "'" + file->entry +
                    "' is a factorisation of a library that this version does "
                    "not have: compute it before, and pass what it gives as "
                    "an argument, or give it a kernel by --custom");
  if (file->isOpaque())
    return fail(ErrorKind::Unsupported,
                "nothing says what the custom call '" + file->entry +
                    "' computes, so it can be planned and not run: give it a "
                    "kernel by --custom '" +
                    file->entry + "=FILE.cu:ENTRY'");
  if (file->call)
    return fail(ErrorKind::Unsupported,
                "'" + file->entry +
                    "' is a function that the process registers, which the "
                    "host target calls; a GPU takes a kernel, by --custom '" +
                    file->entry + "=FILE.cu:ENTRY'");
  if (file->text.empty() && !file->cubins.empty())
    return fail(ErrorKind::Absent,
                "'" + file->entry + "' of " + file->file +
                    " is compiled for NVIDIA GPUs, and the host target is "
                    "none; use --target cuda, or give the kernel as a "
                    "gpu.module, which every target compiles");
  return fail(ErrorKind::Unsupported,
              "'" + file->entry + "' is CUDA C++ in '" + file->file +
                  "', which the host target cannot run; use --target cuda, "
                  "write the kernel as the launch's body, or name a function "
                  "that computes the same as its 'reference'");
}

} // namespace mgpu::planner
