// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKECUBLASLT_H
#define MGPU_TESTS_UNIT_CUDA_FAKECUBLASLT_H

// A cuBLASLt that is not there, over FakeCuda: matrices by columns, as the
// library's guide has them, really multiplied when the stream or the graph runs
// the call. It keeps the library's rules, each with the line of cublasLt.h
// (CUDA 13.0) it is from, knows nothing of plans, and counts its calls with
// those of FakeCuda, so that each of them can be made to fail.

#include "FakeCuda.h"

#include "device/cuda/api/CublasLtApi.h"

namespace mgpu::fake {

struct FakeLtHandle {
  Context *context;
};
struct FakeLtOperation {
  device::CublasCompute compute;
  device::CublasType scale;
  int32_t transposeA = 0;
};
struct FakeLtLayout {
  device::CublasType type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t apart = 0;
};
struct FakeLtPreference {
  uint64_t workspaceBytes = 0;
  uint32_t alignment[4] = {256, 256, 256, 256};
};

class FakeCublasLt {
public:
  /// The one instance, fresh, with FakeCuda::reset()'s life.
  static FakeCublasLt &reset();
  static FakeCublasLt &instance();
  static std::shared_ptr<const device::CublasLtApi> api();

  device::CublasStatus failCode = device::CublasStatus::InternalError;
  bool hasAlgorithm = true;
  int numAlgorithms = 5; ///< for any product
  uint64_t place = 0;    ///< of the last call's algorithm among them
  bool isLoose = false;  ///< captured, it waits for what is before it to begin
  uint64_t workspaceBytes = 4096;  ///< what every algorithm needs
  const void *workspace = nullptr; ///< of the last call
  uint64_t products = 0;           ///< that ran
  uint64_t captured = 0;           ///< calls

  Objects<FakeLtHandle> handles;
  Objects<FakeLtOperation> operations;
  Objects<FakeLtLayout> layouts;
  Objects<FakeLtPreference> preferences;
  std::set<std::string> loaded; ///< algorithms that ran outside of captures
  /// What is still there, one line for each kind.
  std::vector<std::string> leaks() const;
};

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKECUBLASLT_H
