// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELOUTLINE_H
#define MGPU_PLANNER_IMPORT_KERNELOUTLINE_H

// Finds the kernel of a launch, and what it is given, among those known.

#include "planner/import/HostValue.h"
#include "planner/import/KernelHash.h"
#include "planner/import/KernelShape.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <map>

namespace mgpu::planner {

class KernelTable {
public:
  /// Kernels of `module` are added to `recorder`; equal ones share an entry.
  /// Without `makesTexts` they have no source.
  KernelTable(mlir::ModuleOp module, Recorder &recorder, bool makesTexts)
      : recorder(recorder), makesTexts(makesTexts), hasher(module) {}

  struct Outlined {
    KernelId kernel;
    std::vector<KernelArgument> arguments;
  };
  /// `valueOf` may answer a scalar with a View: the kernel then reads it
  /// from there. Fails after a diagnostic at the op that cannot be captured.
  mlir::FailureOr<Outlined>
  outline(ir::LaunchOp launch, Dim3 block, int64_t dynamicSharedBytes,
          llvm::function_ref<HostValue(mlir::Value)> valueOf);
  /// outline() for a launch whose kernel is a file of CUDA C++
  /// (SourceKernel.cpp).
  mlir::FailureOr<Outlined>
  outlineSource(ir::LaunchOp launch, Dim3 block, int64_t dynamicSharedBytes,
                llvm::function_ref<HostValue(mlir::Value)> valueOf);
  /// The facts of a launch of the kernel, if none before it was as large.
  void keepFacts(KernelId kernel, KernelFacts facts);

private:
  /// The kernel of that hash. A new one gets a name, which begins with the
  /// launch's name or `base`, its place, and `sourceOf()`.
  KernelId intern(KernelSpec spec, ir::LaunchOp launch, llvm::StringRef base,
                  llvm::function_ref<decltype(KernelSpec::source)()> sourceOf);

  Recorder &recorder;
  bool makesTexts;
  KernelHasher hasher;
  llvm::StringMap<KernelId> byHash;
  /// A launch in an unrolled loop is read once.
  struct Body {
    uint32_t shape = 0;
    llvm::SmallVector<mlir::Value, 4> captures;
  };
  llvm::DenseMap<mlir::Operation *, Body> byLaunch;
  KernelShapes shapes;
  /// By the words of shape, block size and argument types; only what is new
  /// here is hashed.
  llvm::StringMap<KernelId> bySignature;
  llvm::StringMap<uint32_t> namesUsed;
  /// The text of files that launches name, and the kernels made of them by
  /// launch and block size.
  llvm::StringMap<std::string> files;
  std::map<std::vector<uintptr_t>, KernelId> bySource;
};

/// A scalar's bits, zero-extended.
uint64_t bitsOf(mlir::Attribute scalar);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_KERNELOUTLINE_H
