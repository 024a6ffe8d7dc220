// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_VECTORFORM_H
#define MGPU_KERNELS_CUDA_VECTORFORM_H

#include "facts/IndexRanges.h"
#include "facts/Uniformity.h"
#include "kernels/lower/LaunchShape.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <string>

namespace mgpu::kernels::cuda {

/// How a kernel is computed for MGPU_VECTOR threads of the source at once that
/// are neighbours along x and belong to one block: what is the same for all of
/// them is computed once, the rest is an array.
class VectorForm {
public:
  explicit VectorForm(mlir::func::FuncOp entry) : uniformity(entry.getBody()) {
    findRefusal(entry);
  }

  /// Why there is no such form; empty where there is.
  const std::string &refusal() const { return reason; }
  bool isVarying(mlir::Value value) const {
    return !uniformity.isUniform(value, facts::Among::Neighbours);
  }
  /// Whether executing the operation once does what each thread's doing it
  /// does, with the same result.
  bool runsOnce(mlir::Operation *op) const {
    return uniformity.isUniformOp(op, facts::Among::Neighbours);
  }
  /// Whether all of them take the same way through an scf.for or scf.if.
  bool sharesControl(mlir::Operation *op) const {
    return uniformity.hasUniformControl(op, facts::Among::Neighbours);
  }
  /// Whether an index surely grows by 1 from one thread to the next.
  bool areNeighbours(mlir::Value index, const facts::IndexRanges &ranges) const;

private:
  void findRefusal(mlir::func::FuncOp entry);

  facts::Uniformity uniformity;
  std::string reason;
};

/// Whether MGPU_BLOCK_Y may be more than 1 where blocks of the source, which a
/// kernel keeps, are a warp each: as many of them lie beside each other then.
bool mayLieBeside(const LaunchShape &shape, bool hasVectorForm, Dim3 block);

/// Why MGPU_VECTOR of a kernel must be 1; empty where it may be more.
std::string vectorRefusal(const LaunchShape &shape, mlir::func::FuncOp entry,
                          Dim3 block);

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_VECTORFORM_H
