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

/// The attribute of a fragment that computes again what another one did.
inline constexpr llvm::StringLiteral rematName = "remat";

/// The attribute of a fragment that runs as one with another: in which half.
inline constexpr llvm::StringLiteral halfName = "mpmd.half";

/// The kind as attributes have it.
inline mpmd::WorkKind kindOf(PipelineWork::Kind kind) {
  static_assert(int(PipelineWork::Kind::Weights) ==
                int(mpmd::WorkKind::kWeights));
  return mpmd::WorkKind(kind);
}

/// The first name of a fragment that has an origin.
llvm::StringRef originOf(mpmd::FragmentOp op);

/// Whether another mesh waits for `value`, which a fragment makes, or work of
/// the same microbatch with another name does.
bool isWaitedFor(mlir::OpResult value);
/// Whether the results of a backward fragment are of both kinds.
bool canBeSplit(mpmd::FragmentOp op);

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
/// more wherever it goes to another mesh. With `takesWhole` a program without
/// call counters and backward work is one microbatch, else it is no pipeline.
Pipeline findPipeline(mlir::func::FuncOp function, bool takesWhole = false);

} // namespace mgpu::conversion

#endif // MGPU_DIALECT_CONVERSION_MPMD_PIPELINEWORKS_H
