// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_CUBLASLTPRODUCTS_H
#define MGPU_DEVICE_CUDA_API_CUBLASLTPRODUCTS_H

// Matrix products by cuBLASLt. It knows matrices by columns: read so, rows of C
// are the columns of its transpose, and C' = B' A' is what it is asked for,
// without a transposition of anything. It adds in an order of its own.

#include "device/cuda/api/CublasLtApi.h"
#include "kernels/abi/MatrixProduct.h"

#include <optional>

namespace mgpu::device {

/// A call of cublasLtMatmul, all of it decided.
struct ProductCall {
  kernels::MatrixProduct product; ///< offsets are in the addresses
  const std::byte *a = nullptr, *b = nullptr;
  std::byte *c = nullptr;
  CublasLtAlgorithm algorithm{};
  /// Memory of the GPU: what choose() is offered, and then what it needs.
  uint64_t workspaceBytes = 0;
  std::byte *workspace = nullptr;
};

/// cuBLASLt on one GPU. The GPU's context is current in every call.
class Products {
public:
  /// `where` is for error texts: "on cuda:0".
  static Result<std::unique_ptr<Products>>
  open(std::shared_ptr<const CublasLtApi> api, std::string where);
  /// Nothing is destroyed: that is close()'s.
  ~Products() = default;
  Products(const Products &) = delete;
  Products &operator=(const Products &) = delete;

  /// The algorithm that cuBLASLt's heuristic has in the place
  /// `product.choice`, or in the last before it, for a call with no more than
  /// its workspace, and how much of that it needs, into `call`; false where it
  /// has none.
  Result<bool> choose(ProductCall &call, std::string_view name) const;
  /// Enqueues it on `stream`, capturing or not. `c` is where it writes, which
  /// is call.c but for a trial.
  Result<void> issue(const ProductCall &call, std::byte *c, CUstream stream,
                     std::string_view name) const;
  /// After the last graph that holds a call.
  void close();

private:
  Products(std::shared_ptr<const CublasLtApi> api, std::string where)
      : api(std::move(api)), where(std::move(where)) {}

  std::shared_ptr<const CublasLtApi> api;
  std::string where;
  CublasLtHandle handle = nullptr;
};

/// Bytes from the first element of C to one past its last.
uint64_t extentOfSums(const kernels::MatrixProduct &product);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_CUBLASLTPRODUCTS_H
