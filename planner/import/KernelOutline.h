// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELOUTLINE_H
#define MGPU_PLANNER_IMPORT_KERNELOUTLINE_H

// Takes a launch's body out of the host program: a module with one function
// @entry whose arguments are the captured memrefs and scalars.

#include "planner/import/HostValue.h"
#include "planner/import/KernelShape.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace mgpu::ir {
class LaunchOp;
} // namespace mgpu::ir

namespace mgpu::planner {

class KernelTable {
public:
  /// Kernels are appended to `kernels`; equal ones share an entry.
  explicit KernelTable(std::vector<KernelSpec> &kernels) : kernels(kernels) {}

  struct Outlined {
    KernelId kernel;
    std::vector<KernelArgument> arguments;
  };
  /// `valueOf` may answer a scalar with a MemRefValue: the kernel then reads it
  /// from there. Fails after a diagnostic at the op that cannot be captured.
  mlir::FailureOr<Outlined>
  outline(ir::LaunchOp launch, Dim3 block, int64_t dynamicSharedBytes,
          llvm::function_ref<HostValue(mlir::Value)> valueOf);

private:
  std::vector<KernelSpec> &kernels;
  llvm::StringMap<KernelId> byHash;
  /// A launch in an unrolled loop is read once.
  struct Body {
    uint32_t shape = 0;
    llvm::SmallVector<mlir::Value, 4> captures;
  };
  llvm::DenseMap<mlir::Operation *, Body> byLaunch;
  KernelShapes shapes;
  /// Per shape, the kernels made of it by block size and argument types; text
  /// is made and hashed only for these.
  std::vector<std::map<std::vector<uintptr_t>, KernelId>> byShape;
  llvm::StringMap<uint32_t> namesUsed;
};

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELOUTLINE_H
