// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELSHAPE_H
#define MGPU_PLANNER_IMPORT_KERNELSHAPE_H

// Tells equal launch bodies apart without copying or printing them: programs
// launch few kernels many times.

#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Allocator.h"

#include <vector>

namespace mgpu::planner {

/// A body with its values numbered by first sight. Two bodies of equal shape
/// print alike but for the types that captured memrefs get.
struct KernelShape {
  llvm::SmallVector<uintptr_t, 64> words;       ///< all but properties, exactly
  llvm::SmallVector<mlir::Operation *, 16> ops; ///< whose properties count
  llvm::SmallVector<mlir::Value, 4> captures;   ///< in order of first use

  explicit KernelShape(mlir::Region &body);
};

/// Numbers shapes; equal ones get one number. The bodies must outlive it.
class KernelShapes {
public:
  uint32_t numberOf(const KernelShape &shape);

private:
  struct Kept {
    llvm::ArrayRef<uintptr_t> words;
    llvm::ArrayRef<mlir::Operation *> ops;
    uint32_t next; ///< next one of the same hash; its own number: none
  };
  std::vector<Kept> shapes;
  llvm::DenseMap<uint64_t, uint32_t> byHash; ///< the last of each hash
  llvm::BumpPtrAllocator memory;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELSHAPE_H
