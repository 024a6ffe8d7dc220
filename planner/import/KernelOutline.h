// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_KERNELOUTLINE_H
#define MGPU_PLANNER_IMPORT_KERNELOUTLINE_H

// Finds the kernel of a launch, and what it is given, among those known.

#include "planner/import/HostValue.h"
#include "planner/import/KernelHash.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Region.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Allocator.h"

#include <map>
#include <vector>

namespace mgpu::planner {

// Tells equal launch bodies apart without copying or printing them: programs
// launch few kernels many times.

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
  mlir::FailureOr<Outlined> outline(ir::LaunchOp launch, Dim3 block,
                                    int64_t dynamicSharedBytes,
                                    HostValueOf valueOf);
  /// outline() for a launch whose kernel is a file of CUDA C++
  /// (SourceKernel.cpp).
  mlir::FailureOr<Outlined> outlineSource(ir::LaunchOp launch, Dim3 block,
                                          int64_t dynamicSharedBytes,
                                          HostValueOf valueOf);
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
