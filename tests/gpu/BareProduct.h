// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_GPU_BAREPRODUCT_H
#define MGPU_TESTS_GPU_BAREPRODUCT_H

#include "bench/suites/cuda/BareGpu.h"
#include "device/cuda/api/CublasLtProducts.h"
#include "tests/gpu/Side.h"

namespace mgpu::gpu {

/// The first product of a program that cuBLASLt computes, as a call of
/// cublasLtMatmul into a stream, on memory of its own.
class BareProduct {
public:
  /// Null where the program has none, or cuBLASLt no algorithm. `side` and
  /// `gpu` must outlive it.
  static Result<std::unique_ptr<BareProduct>> make(Side &side,
                                                   bench::BareGpu &gpu);
  ~BareProduct() { products->close(); }
  BareProduct(const BareProduct &) = delete;
  BareProduct &operator=(const BareProduct &) = delete;

  /// The GPU's microseconds of one call.
  Result<double> us();

private:
  BareProduct(bench::BareGpu &gpu, std::unique_ptr<device::Products> products)
      : gpu(gpu), products(std::move(products)) {}

  bench::BareGpu &gpu;
  std::unique_ptr<device::Products> products;
  device::ProductCall call;
};

} // namespace mgpu::gpu

#endif // MGPU_TESTS_GPU_BAREPRODUCT_H
