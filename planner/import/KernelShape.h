// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELSHAPE_H
#define MGPU_PLANNER_IMPORT_KERNELSHAPE_H

// Tells equal launch bodies apart without copying or printing them: programs
// launch few kernels many times.

#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

#include <deque>
#include <unordered_map>

namespace mgpu::planner {

/// A body with its values numbered by first sight. Two bodies of equal shape
/// print alike but for the types that captured memrefs get.
struct KernelShape {
  llvm::SmallVector<uintptr_t, 64> words;       ///< all but properties, exactly
  llvm::SmallVector<mlir::Operation *, 16> ops; ///< whose properties count
  llvm::SmallVector<mlir::Value, 4> captures;   ///< in order of first use

  explicit KernelShape(mlir::Region &body);
  bool operator==(const KernelShape &other) const;
};

/// Numbers shapes; equal ones get one number. The bodies must outlive it.
class KernelShapes {
public:
  uint32_t numberOf(KernelShape shape);

private:
  std::deque<KernelShape> shapes; ///< large, so they are not to be moved
  std::unordered_multimap<size_t, uint32_t> byHash;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELSHAPE_H
