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
  /// The same of a launch whose kernel is a file of CUDA C++
  /// (SourceKernel.cpp).
  mlir::FailureOr<Outlined>
  outlineSource(ir::LaunchOp launch, Dim3 block, int64_t dynamicSharedBytes,
                llvm::function_ref<HostValue(mlir::Value)> valueOf);

private:
  /// The kernel of that module, known or new; `base` begins its name.
  KernelId intern(mlir::ModuleOp module, ir::LaunchOp launch, Dim3 block,
                  const std::string &base, uint32_t numArguments);

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
  /// Of launches given as source: their files' text, and the kernels made by
  /// launch, block size and argument types.
  llvm::StringMap<std::string> files;
  std::map<std::vector<uintptr_t>, KernelId> bySource;
};

/// Copies the functions that `root` calls, and those they call.
mlir::LogicalResult cloneCallees(mlir::Operation *root, mlir::ModuleOp from,
                                 mlir::ModuleOp into);
/// A scalar's bits, zero-extended.
uint64_t bitsOf(mlir::Attribute scalar);
/// Notes them on the module's @entry, unless they are none.
void setDynamicSharedBytes(mlir::ModuleOp module, int64_t bytes);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELOUTLINE_H
