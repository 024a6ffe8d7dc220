// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_PROGRAM_JAXEXPORT_H
#define MGPU_PIPELINE_PROGRAM_JAXEXPORT_H

// The file that jax.export's serialize() writes: a FlatBuffer with a module in
// bytecode and what JAX needs to call it. The schema is
// jax/_src/export/serialization.fbs of https://github.com/jax-ml/jax; fields
// were only ever added to it, so that files of every version are read.

#include "support/Result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mgpu::pipeline {

struct JaxExport {
  std::string function;
  std::string jaxVersion; ///< empty before version 12 of the schema
  std::vector<std::string> platforms;
  uint32_t devices = 0; ///< that it was exported for; 0 where it is not said
  /// It says which arguments of @main stand before the function's own.
  unsigned callingConvention = 0;
  std::span<const std::byte> module; ///< bytecode, in the bytes of the file
};

/// Whether a file begins as such a file does.
bool isJaxExport(std::span<const std::byte> file);

/// Invalid where a part of it lies outside the file; `name` is what the error
/// calls the file.
Result<JaxExport> readJaxExport(std::span<const std::byte> file,
                                const std::string &name);

} // namespace mgpu::pipeline

#endif // MGPU_PIPELINE_PROGRAM_JAXEXPORT_H
