// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_CUSPARSEPRODUCTS_H
#define MGPU_DEVICE_CUDA_API_CUSPARSEPRODUCTS_H

// Products with a sparse matrix by cuSPARSE, which adds in an order of its own.

#include "device/cuda/api/CusparseApi.h"
#include "kernels/abi/MatrixProduct.h"

#include <optional>

namespace mgpu::device {

/// A call of cuSPARSE, all of it decided.
struct SparseCall {
  kernels::SparseProduct product; ///< offsets are in the addresses
  std::byte *positions = nullptr, *index = nullptr, *values = nullptr;
  std::byte *first = nullptr, *second = nullptr;
  /// Memory of the GPU, as much as bufferBytes() says.
  std::byte *buffer = nullptr;
};

/// cuSPARSE on one GPU. The GPU's context is current in every call.
class SparseProducts {
public:
  /// `where` is for error texts: "on cuda:0".
  static Result<std::unique_ptr<SparseProducts>>
  open(std::shared_ptr<const CusparseApi> api, std::string where);
  /// Nothing is destroyed: that is close()'s.
  ~SparseProducts() = default;
  SparseProducts(const SparseProducts &) = delete;
  SparseProducts &operator=(const SparseProducts &) = delete;

  /// How much memory a call needs; nothing where cuSPARSE has no way for it.
  Result<std::optional<uint64_t>> bufferBytes(const SparseCall &call,
                                              std::string_view name) const;
  /// Enqueues it on `stream`, capturing or not.
  Result<void> issue(const SparseCall &call, CUstream stream,
                     std::string_view name) const;
  /// After the last graph that holds a call.
  void close();

private:
  SparseProducts(std::shared_ptr<const CusparseApi> api, std::string where)
      : api(std::move(api)), where(std::move(where)) {}

  std::shared_ptr<const CusparseApi> api;
  std::string where;
  CusparseHandle handle = nullptr;
};

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_CUSPARSEPRODUCTS_H
