// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_CUDA_ENTRYTEXT_H
#define MGPU_KERNELS_CUDA_ENTRYTEXT_H

// Writes what is above and below a kernel's body in its text.

#include "kernels/cuda/CudaEmitter.h"
#include "kernels/cuda/StagePlan.h"
#include "kernels/lower/LaunchShape.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace mgpu::kernels::cuda {

/// One dimension of the launch.
struct Axis {
  char letter;     ///< 'x'
  char upper;      ///< 'X'
  uint64_t block;  ///< threads of the source's block along it
  uint64_t extent; ///< most threads of any launch along it
};

/// "64 x 1 x 1"
std::string dims(Dim3 d);

/// The shape on a GPU, where blocks of clusters are the source's.
LaunchShape launchShapeOf(mlir::ModuleOp module, Dim3 block);

/// Whether a function is given `at`: it may ask for anything.
bool handsOnThread(llvm::StringRef body);

/// The macro that reads buffer `name` through its tile where MGPU_STAGE is 1.
std::string stageMacro(llvm::StringRef name);

struct EntryText {
  /// Finds the axes of a launch and the type that counts its threads.
  EntryText(const CudaKernel &kernel, const CudaEmitOptions &options);

  /// The comment, the macros and the types.
  std::string header() const;
  /// The __global__ function around `body`, the statements of one thread.
  std::string entry(const std::string &body) const;

  const CudaKernel &kernel;
  const CudaEmitOptions &options;
  llvm::SmallVector<Axis, 3> axes;   ///< those that are longer than 1, and x
  std::string count;                 ///< the type that counts threads
  const StagePlan *stages = nullptr; ///< where MGPU_STAGE may be 1
  bool vectorForm = false;           ///< MGPU_VECTOR may be more than 1
  bool mayLieBeside = false;         ///< MGPU_BLOCK_Y may (VectorForm.h)
  bool usesShared = false;
  bool hasThread = false; ///< the text has a MgpuThread

private:
  std::string comment() const;
  std::string macros() const;
  std::string stageMacros() const; // StagePlan.cpp, as the next three
  std::string stageArrays() const;
  std::string stageCopies() const;
  std::string stageCopy(const StageTile &tile) const;
  std::string fetchCalls() const;
  std::string launchForm() const;
  std::string fixedBlocks(const std::string &body) const;
  std::string anyBlocks(const std::string &body) const;
  std::string leaveWithoutAxis() const;
  std::string insideLaunch() const;
  std::string ids(const std::string &indent, const std::string &body,
                  bool inLoop) const;
};

} // namespace mgpu::kernels::cuda

#endif // MGPU_KERNELS_CUDA_ENTRYTEXT_H
