// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PIPELINE_TORCH_LOWER_H
#define MGPU_PIPELINE_TORCH_LOWER_H

// A .pt2 file of torch.export.save as a program in StableHLO, which the
// compiler half reads as that of any other exporter.

#include "support/Result.h"

#include <map>

namespace mgpu::pipeline::torch {

struct Lowered {
  std::string text; ///< StableHLO, with the entry @main
  struct Weight {
    size_t number; ///< among the arguments
    std::string argument,
        tensor; ///< its name, and that of its value in the file
  };
  /// Each has the role `resident`, but those that the program changes: they
  /// stay on the device too.
  std::vector<Weight> weights;
};

/// Whether `path` is a zip archive: no other kind of file that is read is one.
bool isArchive(const std::string &path);

/// The program of `path`. `dims` are sizes of dimensions that it leaves open.
/// Weights are called as in the module, inputs as in the graph; results are
/// what the module returns, then the next state of buffers and inputs that it
/// changes, each donated its argument. Errors: Invalid for a damaged file,
/// Unsupported by the name of an operation that is not read, Usage for `dims`.
Result<Lowered> lowerProgram(const std::string &path,
                             const std::map<std::string, std::string> &dims);

} // namespace mgpu::pipeline::torch

#endif // MGPU_PIPELINE_TORCH_LOWER_H
