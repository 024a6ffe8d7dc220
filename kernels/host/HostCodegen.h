// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_HOST_HOSTCODEGEN_H
#define MGPU_KERNELS_HOST_HOSTCODEGEN_H

#include "support/Result.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace mgpu::kernels {

/// Whether `cpu` (HostEmitOptions::cpu) has a feature by LLVM's name: "fma",
/// "f16c", "avx512vl". A level has those of its definition.
bool hasFeature(const std::string &cpu, llvm::StringRef feature);

/// The options that LLVM is given beside the code.
struct HostCodeOptions {
  std::string cpu;          ///< HostEmitOptions::cpu
  uint32_t vectorWidth = 0; ///< lanes of loops over threads; 0: LLVM's choice
  uint32_t unroll = 0;      ///< for loops marked Sequential
  /// The width of the widest vectors. Vectors of 512 bits lower the clock of
  /// many processors, which products and functions are worth.
  uint32_t vectorBits = 256;
};

/// Lowers a module of thread loops (ThreadLoops.h) to the LLVM dialect, with
/// our own conversions of the float types that the processor does not have.
/// Chooses the width of vectors.
mlir::LogicalResult lowerToLlvm(mlir::ModuleOp module, HostCodeOptions &code);

/// Turns the calls of loopMarker (ThreadLoops.h) into loop metadata.
void markLoops(llvm::Module &module, const HostCodeOptions &options);

/// Optimises the lowered module and returns its object file. No contraction
/// and no fast math.
Result<llvm::SmallVector<char, 0>> emitObject(mlir::ModuleOp module,
                                              const HostCodeOptions &options);

/// Links an object file into a shared object. Errors: Unsupported where it
/// needs a function that the runtime does not have; Absent without memory.
Result<std::vector<std::byte>>
linkSharedObject(const llvm::SmallVectorImpl<char> &object);

} // namespace mgpu::kernels

#endif // MGPU_KERNELS_HOST_HOSTCODEGEN_H
