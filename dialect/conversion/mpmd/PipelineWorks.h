// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DIALECT_CONVERSION_MPMD_PIPELINEWORKS_H
#define MGPU_DIALECT_CONVERSION_MPMD_PIPELINEWORKS_H

// Finds the pipeline in a program of fragments: which of them work on
// microbatches, and at which stage of which mesh.

#include "dialect/conversion/mpmd/PipelineOrder.h"
#include "dialect/mpmd/MpmdDialect.h"

#include <map>

namespace mgpu::conversion {

/// Attributes of the parts of a backward fragment, as Shardy has them: what
/// other meshes wait for, and the rest.
inline constexpr llvm::StringLiteral keepTransferredName =
    "split_keep_transferred";
inline constexpr llvm::StringLiteral dropTransferredName =
    "split_drop_transferred";

struct Pipeline {
  struct Mesh {
    llvm::StringRef name;
    /// Fragments of one work follow each other in program order.
    std::map<PipelineWork, llvm::SmallVector<mlir::Operation *>> works;
  };
  PipelineSize size;
  llvm::SmallVector<Mesh> meshes; ///< as data goes forward
};

/// A fragment of a named computation with a call counter, its microbatch, is
/// forward work if nothing in it was transposed, and backward work if all of it
/// was transposed once. Stages are counted along the data of a microbatch: one
/// more wherever it goes to another mesh.
Pipeline findPipeline(mlir::func::FuncOp function);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_PIPELINEWORKS_H
