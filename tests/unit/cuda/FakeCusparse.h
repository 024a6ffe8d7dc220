// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_CUDA_FAKECUSPARSE_H
#define MGPU_TESTS_UNIT_CUDA_FAKECUSPARSE_H

// A cuSPARSE that is not there, over FakeCuda: products that are really
// computed when the stream or the graph runs the call, as cusparse.h (12.6)
// declares them. It knows nothing of plans, and counts its calls with those of
// FakeCuda, so that each of them can be made to fail.

#include "FakeCuda.h"

#include "device/cuda/api/CusparseApi.h"

namespace mgpu::fake {

struct FakeSparseHandle {
  Context *context;
  CUstream stream = nullptr;
};
struct FakeSparseMatrix {
  int64_t rows, columns, entries;
  std::byte *positions, *indices, *values;
  device::CusparseIndex index;
  device::CusparseType type;
};
struct FakeDenseMatrix {
  int64_t rows, columns, leading;
  std::byte *values;
  device::CusparseType type;
};

class FakeCusparse {
public:
  /// The one instance, fresh, with FakeCuda::reset()'s life.
  static FakeCusparse &reset();
  static FakeCusparse &instance();
  static std::shared_ptr<const device::CusparseApi> api();

  device::CusparseStatus failCode = device::CusparseStatus::InternalError;
  bool hasWay = true;
  uint64_t bufferBytes = 512; ///< what every call needs
  uint64_t products = 0;      ///< that ran
  uint64_t captured = 0;      ///< calls

  Objects<FakeSparseHandle> handles;
  Objects<FakeSparseMatrix> matrices;
  Objects<FakeDenseMatrix> dense; ///< vectors, too, as one column
  /// What is still there, one line for each kind.
  std::vector<std::string> leaks() const;
};

} // namespace mgpu::fake

#endif // MGPU_TESTS_UNIT_CUDA_FAKECUSPARSE_H
