// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_ATTENTIONTEXT_H
#define MGPU_KERNELS_CUDA_ATTENTIONTEXT_H

// The parts that texts of attentions have in common: their names, arguments,
// sizes and macros, and the function that makes a score of a product.

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/cuda/CudaHelpers.h"
#include "kernels/cuda/SourceText.h"
#include "kernels/lower/AttentionParts.h"
#include "kernels/space/KernelSpace.h"
#include "planner/dag/KernelWork.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mgpu::kernels {

/// The sizes that the cost model has, too: queries of a warp and keys of a
/// tile follow from them, and decide bits.
planner::AttentionSizes sizesOf(ir::AttentionAttr of, bool onTensorCores);

} // namespace mgpu::kernels

namespace mgpu::kernels::cuda {

class AttentionText {
public:
  /// `reserved`: names of the text, with blanks between them, which arguments
  /// may not have.
  AttentionText(mlir::ModuleOp kernel, const CudaEmitOptions &options,
                const KernelSpace &space, llvm::StringRef reserved);
  /// Fails, after a diagnostic, where the score cannot be emitted. The words
  /// are then complete, but for those of the text's own:
  ///   NAME, AT        of the kernel; ": the launch at FILE:LINE:COLUMN"
  ///   Q, K, V, R      the arguments' names, and QTYPE, ... their elements'
  ///   QFIRST, ...     where the operand's elements of the batch begin
  ///   SCORE           "f(x, ": the score of a product, whose other arguments
  ///                   are the product, the query, the batch and the key
  ///   QUERIES, KEYS, HEAD, VALUE, BATCHES  sizes
  ///   X, Y            threads of the source's block
  ///   PARAMETERS, PASSED  all arguments, and their names alone
  ///   LAUNCH, AWAITER, AWAIT, FORM, MACROS, PARTS, HELPERS  as ProductText's
  mlir::LogicalResult prepare();
  /// "name[...]": an element of operand `k` (0 to 3: Q, K, V, the result) at a
  /// query or a key, and an element of its head or value.
  std::string elementAt(unsigned k, const std::string &row,
                        const std::string &column) const;
  /// The kernel with the text: its head, the macros and its body.
  CudaKernel write(const char *head, const char *body);

  AttentionBody body;
  mlir::func::FuncOp entry;
  CudaKernel kernel;
  Substitutions words;
  Helpers helpers;

private:
  mlir::LogicalResult emitScore();
  std::string firstOf(unsigned k) const;

  const CudaEmitOptions &options;
  const KernelSpace &space;
  Names names;
  std::vector<std::string> arguments; ///< their names, by position
  std::vector<std::string> types;     ///< their types in the text
  std::string function;               ///< makes a score of a product
};

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_ATTENTIONTEXT_H
