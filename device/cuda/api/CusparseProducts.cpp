// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CusparseProducts.h"

#include <fmt/format.h>

namespace mgpu::device {

namespace {

Result<CusparseType> cusparseTypeOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return CusparseType::F16;
  case ElementType::BF16:
    return CusparseType::Bf16;
  case ElementType::F32:
    return CusparseType::F32;
  case ElementType::F64:
    return CusparseType::F64;
  default:
    return fail(ErrorKind::Unsupported,
                fmt::format("products of {} are not asked of cuSPARSE",
                            toString(type)));
  }
}

CusparseOperation operationOf(bool isTurned) {
  return isTurned ? CusparseOperation::Transpose : CusparseOperation::Plain;
}

/// The descriptors by which cuSPARSE knows a product; destroyed with it.
class SparseDescription {
public:
  SparseDescription(const CusparseApi &api, std::string where)
      : api(api), where(std::move(where)) {}
  ~SparseDescription() {
    for (CusparseVector vector : vectors)
      if (vector)
        api.DestroyDnVec(vector);
    for (CusparseDense matrix : dense)
      if (matrix)
        api.DestroyDnMat(matrix);
    if (sparse)
      api.DestroySpMat(sparse);
  }
  SparseDescription(const SparseDescription &) = delete;
  SparseDescription &operator=(const SparseDescription &) = delete;

  Result<void> check(CusparseStatus status, const char *call) const {
    if (status == CusparseStatus::Success)
      return {};
    return cusparseError(api, status, call, where);
  }

  Result<void> describe(const SparseCall &call) {
    const kernels::SparseProduct &product = call.product;
    const uint64_t rows = product.rows, columns = product.columns;
    MGPU_TRY_ASSIGN(factors, cusparseTypeOf(product.factors));
    MGPU_TRY_ASSIGN(sums, cusparseTypeOf(product.sums));
    compute = sums == CusparseType::F64 ? sums : CusparseType::F32;
    const CusparseIndex indices = sizeBytes(product.indices) == 8
                                      ? CusparseIndex::I64
                                      : CusparseIndex::I32;
    MGPU_TRY(check(api.CreateCsr(&sparse, int64_t(rows), int64_t(columns),
                                 int64_t(product.entries), call.positions,
                                 call.index, call.values, indices, indices,
                                 CusparseBase::Zero, factors),
                   "cusparseCreateCsr"));
    firstAs = operationOf(product.isFirstTurned);
    secondAs = operationOf(product.isSecondTurned);
    switch (product.kind) {
    case kernels::SparseProduct::Vector:
      MGPU_TRY(vector(0, columns, call.first, factors));
      return vector(1, rows, call.second, sums);
    case kernels::SparseProduct::Matrix:
      MGPU_TRY(matrix(0, columns, product.breadth, product.isFirstTurned,
                      call.first, factors));
      return matrix(1, rows, product.breadth, false, call.second, sums);
    default:
      MGPU_TRY(matrix(0, rows, product.breadth, product.isFirstTurned,
                      call.first, factors));
      return matrix(1, product.breadth, columns, product.isSecondTurned,
                    call.second, factors);
    }
  }

  const CusparseApi &api;
  std::string where;
  CusparseMatrix sparse = nullptr;
  CusparseVector vectors[2] = {};
  CusparseDense dense[2] = {};
  CusparseType factors = CusparseType::F32, sums = CusparseType::F32,
               compute = CusparseType::F32;
  CusparseOperation firstAs = CusparseOperation::Plain,
                    secondAs = CusparseOperation::Plain;

private:
  Result<void> vector(size_t k, uint64_t size, std::byte *memory,
                      CusparseType type) {
    return check(api.CreateDnVec(&vectors[k], int64_t(size), memory, type),
                 "cusparseCreateDnVec");
  }
  /// One that is stored row after row, and as its transposed one if it is
  /// turned.
  Result<void> matrix(size_t k, uint64_t rows, uint64_t columns, bool isTurned,
                      std::byte *memory, CusparseType type) {
    if (isTurned)
      std::swap(rows, columns);
    return check(api.CreateDnMat(&dense[k], int64_t(rows), int64_t(columns),
                                 int64_t(columns), memory, type,
                                 CusparseOrder::Row),
                 "cusparseCreateDnMat");
  }
};

/// 1, by the type it is read as when a call is made.
const void *one(CusparseType compute) {
  static constexpr float single = 1;
  static constexpr double wide = 1;
  return compute == CusparseType::F64 ? static_cast<const void *>(&wide)
                                      : static_cast<const void *>(&single);
}

} // namespace

Result<std::unique_ptr<SparseProducts>>
SparseProducts::open(std::shared_ptr<const CusparseApi> api,
                     std::string where) {
  std::unique_ptr<SparseProducts> products(
      new SparseProducts(std::move(api), std::move(where)));
  CusparseStatus status = products->api->Create(&products->handle);
  if (status != CusparseStatus::Success)
    return cusparseError(*products->api, status, "cusparseCreate",
                         products->where);
  return products;
}

void SparseProducts::close() {
  if (handle)
    api->Destroy(handle);
  handle = nullptr;
}

Result<std::optional<uint64_t>>
SparseProducts::bufferBytes(const SparseCall &call,
                            std::string_view name) const {
  SparseDescription with(*api, fmt::format("for '{}' {}", name, where));
  MGPU_TRY(with.describe(call));
  const void *scale = one(with.compute);
  size_t bytes = 0;
  CusparseStatus status = CusparseStatus::Success;
  const char *asked = "cusparseSpMV_bufferSize";
  switch (call.product.kind) {
  case kernels::SparseProduct::Vector:
    status = api->SpMV_bufferSize(handle, CusparseOperation::Plain, scale,
                                  with.sparse, with.vectors[0], scale,
                                  with.vectors[1], with.compute,
                                  CusparseVectorWay::CsrSteady, &bytes);
    break;
  case kernels::SparseProduct::Matrix:
    asked = "cusparseSpMM_bufferSize";
    status = api->SpMM_bufferSize(
        handle, CusparseOperation::Plain, with.firstAs, scale, with.sparse,
        with.dense[0], scale, with.dense[1], with.compute,
        CusparseMatrixWay::CsrSteady, &bytes);
    break;
  default:
    asked = "cusparseSDDMM_bufferSize";
    status = api->SDDMM_bufferSize(handle, with.firstAs, with.secondAs, scale,
                                   with.dense[0], with.dense[1], scale,
                                   with.sparse, with.compute,
                                   CusparseSampledWay::Default, &bytes);
  }
  if (status == CusparseStatus::NotSupported)
    return std::nullopt;
  MGPU_TRY(with.check(status, asked));
  return std::optional<uint64_t>(bytes);
}

Result<void> SparseProducts::issue(const SparseCall &call, CUstream stream,
                                   std::string_view name) const {
  SparseDescription with(*api, fmt::format("for '{}' {}", name, where));
  MGPU_TRY(with.describe(call));
  MGPU_TRY(with.check(api->SetStream(handle, stream), "cusparseSetStream"));
  const void *scale = one(with.compute);
  switch (call.product.kind) {
  case kernels::SparseProduct::Vector:
    return with.check(api->SpMV(handle, CusparseOperation::Plain, scale,
                                with.sparse, with.vectors[0], scale,
                                with.vectors[1], with.compute,
                                CusparseVectorWay::CsrSteady, call.buffer),
                      "cusparseSpMV");
  case kernels::SparseProduct::Matrix:
    return with.check(api->SpMM(handle, CusparseOperation::Plain, with.firstAs,
                                scale, with.sparse, with.dense[0], scale,
                                with.dense[1], with.compute,
                                CusparseMatrixWay::CsrSteady, call.buffer),
                      "cusparseSpMM");
  default:
    return with.check(api->SDDMM(handle, with.firstAs, with.secondAs, scale,
                                 with.dense[0], with.dense[1], scale,
                                 with.sparse, with.compute,
                                 CusparseSampledWay::Default, call.buffer),
                      "cusparseSDDMM");
  }
}

} // namespace mgpu::device
