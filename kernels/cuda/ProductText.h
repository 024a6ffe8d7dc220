// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_PRODUCTTEXT_H
#define MGPU_KERNELS_CUDA_PRODUCTTEXT_H

// The parts that texts of matrix products have in common: their names,
// arguments, sizes and macros, and how an element of C begins and where it
// goes.

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/cuda/CudaHelpers.h"
#include "kernels/cuda/SourceText.h"
#include "kernels/lower/ProductParts.h"
#include "kernels/space/KernelSpace.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mgpu::kernels::cuda {

struct KernelContext;

/// The space of a matmul's text, whose threads compute tileX x tileY elements
/// each, before what else it offers and requires: each parameter has its value
/// in `defaults`, where blockX, blockY, tileX and tileY are set.
KernelSpace tileSpace(const KernelConfig &defaults, Dim3 block, Dim3 maxGrid,
                      std::string reason,
                      const std::vector<planner::KernelTunable> &tunables);

class ProductText {
public:
  /// `reserved`: names of the text, with blanks between them, which arguments
  /// may not have. A and B are passed as tensor maps or as pointers.
  ProductText(mlir::ModuleOp kernel, const CudaEmitOptions &options,
              const KernelSpace &space, llvm::StringRef reserved,
              bool takesMaps = false);
  /// Fails, after a diagnostic, where what is around the product cannot be
  /// emitted. The words are then complete, but for those of the text's own:
  ///   NAME, AT       of the kernel; ": the launch at FILE:LINE:COLUMN"
  ///   WHAT           "c += a * b", for the first line
  ///   A, B           the names of their arguments
  ///   M, N, K        sizes; BATCHES: "3 times " or ""
  ///   X, Y           threads of the source's block
  ///   TYPE, CTYPE    of the elements of A and B, of C
  ///   LAUNCH         the type of a launch
  ///   END_ROW, END_COLUMN  where the rows and columns of the launch end
  ///   BATCH, BATCH_LINE    the product's number among several; its line, or ""
  ///   MACROS, PARTS  for the comment: macros that all have, and what a part is
  ///   FORM           the constant that says how the entry is launched
  ///   PARAMETERS     all, each with a comma behind it
  ///   OTHERS, PASSED those that are not A or B, and their names alone
  ///   FIRST          what the sum begins with
  ///   STORE, END     around what becomes of it, a value of type CTYPE
  ///   SUMS           macros that begin and store two sums of f32 that lie
  ///                  beside each other, as far as they are inside
  ///   HELPERS        what `helpers` was told, and two functions, where the
  ///                  kernel computes more than the product
  /// Within FIRST, STORE and END the text has `row`, `column` and `batch`.
  mlir::LogicalResult prepare();
  /// Words of the text's own, in which earlier words are replaced.
  void add(const Substitutions &own);
  /// The kernel with the text: its head, the macros and its body.
  CudaKernel write(const char *head, const char *body);

  mlir::func::FuncOp entry;
  mlir::scf::ForOp loop; ///< null where nothing else is computed
  ir::ProductAttr product;
  CudaKernel kernel;
  Substitutions words;
  Helpers helpers;
  std::string a, b; ///< names of the arguments

private:
  mlir::LogicalResult prepareAround();
  mlir::LogicalResult emitPart(mlir::func::FuncOp part, llvm::StringRef which,
                               KernelContext &context, Text &out,
                               std::vector<std::string> &types);
  void addParameter(unsigned position, const std::string &type);
  /// Where nothing else is computed: sums begin with `first` and go to C.
  void beginAndStore(const std::string &first);
  /// Whether two elements beside each other may be one access.
  bool storesPairs() const;

  const CudaEmitOptions &options;
  const KernelSpace &space;
  Names names;
  bool takesMaps;
  std::vector<std::string> arguments; ///< their names, by position
  std::string functions; ///< functions for what is around the product
};

// How the texts of matrix products read the kernel's body and address its
// matrices.

/// Whether a step of the sums is one operation; `loop` as facts::productLoop()
/// has it.
bool addsByFma(mlir::func::FuncOp entry, mlir::scf::ForOp loop);

/// "x[batch * 64LL + row * 8LL + (k + step)]".
std::string elementAt(ir::MatrixAttr matrix, const std::string &name,
                      const std::string &row, const std::string &column);
/// "rows of A overlap", where they do or lie outside; else "". Rows are
/// contiguous.
std::string overlapRefusal(ir::MatrixAttr matrix, const std::string &name);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_PRODUCTTEXT_H
