// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELVIEW_H
#define MGPU_PLANNER_IMPORT_KERNELVIEW_H

// Memrefs inside a kernel, as views of the buffers that it captures.

#include "facts/AffineEvaluator.h"
#include "planner/import/HostValue.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace mgpu::planner {

using facts::AffineEvaluator;

struct KernelView {
  mlir::Value root; ///< the captured memref
  BufferId buffer;
  AffineForm offset; ///< elements, within the buffer
  std::vector<int64_t> sizes, strides;
};

class KernelViews {
public:
  /// `valueOf` as summariseKernel() has it.
  KernelViews(mlir::Region &body, AffineEvaluator &affine, HostValueOf valueOf)
      : body(body), affine(affine), valueOf(valueOf) {}

  /// Null for what is not a cast or a subview of constant size and strides.
  const KernelView *of(mlir::Value memref);

private:
  std::optional<KernelView> compute(mlir::Value memref);

  mlir::Region &body;
  AffineEvaluator &affine;
  HostValueOf valueOf;
  llvm::DenseMap<mlir::Value, std::optional<KernelView>> known;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELVIEW_H
