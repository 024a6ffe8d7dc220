// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CublasLtProducts.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <span>

namespace mgpu::device {

namespace {

Result<CublasType> typeOf(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return CublasType::F16;
  case ElementType::BF16:
    return CublasType::Bf16;
  case ElementType::F32:
    return CublasType::F32;
  case ElementType::F64:
    return CublasType::F64;
  default:
    return fail(ErrorKind::Unsupported,
                fmt::format("products of {} are not asked of cuBLASLt",
                            toString(type)));
  }
}

/// The descriptors by which cuBLASLt knows a product; destroyed with it.
class Description {
public:
  Description(const CublasLtApi &api, std::string where)
      : api(api), where(std::move(where)) {}
  ~Description() {
    if (preference)
      api.MatmulPreferenceDestroy(preference);
    for (CublasLtLayout layout : {first, second, sums})
      if (layout)
        api.MatrixLayoutDestroy(layout);
    if (operation)
      api.MatmulDescDestroy(operation);
  }
  Description(const Description &) = delete;
  Description &operator=(const Description &) = delete;

  Result<void> check(CublasStatus status, const char *call) const {
    if (status == CublasStatus::Success)
      return {};
    return cublasLtError(api, status, call, where);
  }

  Result<void> describe(const kernels::MatrixProduct &product) {
    const bool isWide = product.sums == ElementType::F64;
    MGPU_TRY(check(
        api.MatmulDescCreate(&operation,
                             isWide ? CublasCompute::F64 : CublasCompute::F32,
                             isWide ? CublasType::F64 : CublasType::F32),
        "cublasLtMatmulDescCreate"));
    // By columns: B is n x k, or k x n if it is turned, A k x m, C n x m.
    if (product.isTurned) {
      constexpr int32_t transpose = 1;
      MGPU_TRY(check(api.MatmulDescSetAttribute(
                         operation, CublasLtOperationAttribute::TransposeA,
                         &transpose, sizeof transpose),
                     "cublasLtMatmulDescSetAttribute"));
    }
    MGPU_TRY(layout(first, product, product.matrices[1], product.factors,
                    product.isTurned ? product.k : product.n,
                    product.isTurned ? product.n : product.k));
    MGPU_TRY(layout(second, product, product.matrices[0], product.factors,
                    product.k, product.m));
    return layout(sums, product, product.matrices[2], product.sums, product.n,
                  product.m);
  }

  Result<void> prefer(CublasLtPreferenceAttribute attribute, const void *value,
                      size_t bytes) {
    if (!preference)
      MGPU_TRY(check(api.MatmulPreferenceCreate(&preference),
                     "cublasLtMatmulPreferenceCreate"));
    return check(
        api.MatmulPreferenceSetAttribute(preference, attribute, value, bytes),
        "cublasLtMatmulPreferenceSetAttribute");
  }

  CublasLtOperation operation = nullptr;
  CublasLtLayout first = nullptr, second = nullptr, sums = nullptr;
  CublasLtPreference preference = nullptr;

private:
  Result<void> layout(CublasLtLayout &into,
                      const kernels::MatrixProduct &product,
                      const kernels::MatrixProduct::Matrix &matrix,
                      ElementType element, uint64_t rows, uint64_t columns) {
    MGPU_TRY_ASSIGN(CublasType type, typeOf(element));
    MGPU_TRY(check(api.MatrixLayoutCreate(&into, type, rows, columns,
                                          int64_t(matrix.rowStride)),
                   "cublasLtMatrixLayoutCreate"));
    if (product.batch == 1)
      return {};
    auto count = int32_t(product.batch);
    auto apart = int64_t(matrix.batchStride);
    MGPU_TRY(check(
        api.MatrixLayoutSetAttribute(into, CublasLtLayoutAttribute::BatchCount,
                                     &count, sizeof count),
        "cublasLtMatrixLayoutSetAttribute"));
    return check(api.MatrixLayoutSetAttribute(
                     into, CublasLtLayoutAttribute::StridedBatchOffset, &apart,
                     sizeof apart),
                 "cublasLtMatrixLayoutSetAttribute");
  }

  const CublasLtApi &api;
  std::string where;
};

/// The largest power of two up to 256 that divides the address.
uint32_t alignmentOf(const void *address) {
  constexpr uint64_t most = 256;
  uint64_t bits = uint64_t(uintptr_t(address)) | most;
  return uint32_t(bits & (~bits + 1));
}

} // namespace

Result<std::unique_ptr<Products>>
Products::open(std::shared_ptr<const CublasLtApi> api, std::string where) {
  std::unique_ptr<Products> products(
      new Products(std::move(api), std::move(where)));
  CublasStatus status = products->api->Create(&products->handle);
  if (status != CublasStatus::Success)
    return cublasLtError(*products->api, status, "cublasLtCreate",
                         products->where);
  return products;
}

void Products::close() {
  if (handle)
    api->Destroy(handle);
  handle = nullptr;
}

Result<bool> Products::choose(ProductCall &call, std::string_view name) const {
  using Preference = CublasLtPreferenceAttribute;
  Description with(*api, fmt::format("for '{}' {}", name, where));
  MGPU_TRY(with.describe(call.product));
  MGPU_TRY(with.prefer(Preference::MaxWorkspaceBytes, &call.workspaceBytes,
                       sizeof call.workspaceBytes));
  for (auto [attribute, address] :
       {std::pair<Preference, const void *>(Preference::MinAlignmentA, call.b),
        {Preference::MinAlignmentB, call.a},
        {Preference::MinAlignmentC, call.c},
        {Preference::MinAlignmentD, call.c}}) {
    uint32_t alignment = alignmentOf(address);
    MGPU_TRY(with.prefer(attribute, &alignment, sizeof alignment));
  }
  std::array<CublasLtHeuristic, kernels::mostProductChoices> best{};
  const size_t choice = call.product.choice;
  int found = 0;
  CublasStatus status = api->MatmulAlgoGetHeuristic(
      handle, with.operation, with.first, with.second, with.sums, with.sums,
      with.preference, int(choice) + 1, best.data(), &found);
  if (status == CublasStatus::NotSupported)
    return false;
  MGPU_TRY(with.check(status, "cublasLtMatmulAlgoGetHeuristic"));
  std::span<CublasLtHeuristic> there(best.data(), size_t(std::max(found, 0)));
  while (!there.empty() && there.back().state != CublasStatus::Success)
    there = there.first(there.size() - 1);
  if (there.empty())
    return false;
  call.algorithm = there.back().algorithm;
  call.workspaceBytes = there.back().workspaceBytes;
  return true;
}

Result<void> Products::issue(const ProductCall &call, std::byte *c,
                             CUstream stream, std::string_view name) const {
  Description with(*api, fmt::format("for '{}' {}", name, where));
  MGPU_TRY(with.describe(call.product));
  // Read by the host when the call is made. The type is that of the scale.
  static constexpr float scales[] = {0, 1};
  static constexpr double wideScales[] = {0, 1};
  auto scale = [&](size_t k) {
    return call.product.sums == ElementType::F64
               ? static_cast<const void *>(&wideScales[k])
               : static_cast<const void *>(&scales[k]);
  };
  const void *ofProduct = scale(1),
             *ofSums = scale(call.product.overwrites ? 0 : 1);
  return with.check(api->Matmul(handle, with.operation, ofProduct, call.b,
                                with.first, call.a, with.second, ofSums, c,
                                with.sums, c, with.sums, &call.algorithm,
                                call.workspace, call.workspaceBytes, stream),
                    "cublasLtMatmul");
}

uint64_t extentOfSums(const kernels::MatrixProduct &product) {
  const kernels::MatrixProduct::Matrix &c = product.matrices[2];
  return ((product.batch - 1) * c.batchStride + (product.m - 1) * c.rowStride +
          product.n) *
         sizeBytes(product.sums);
}

} // namespace mgpu::device
