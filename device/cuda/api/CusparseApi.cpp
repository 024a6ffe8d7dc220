// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CusparseApi.h"

#include "device/cuda/api/HeaderTwin.h"
#include "support/SharedLibrary.h"

#include <fmt/format.h>

#if __has_include(<cusparse.h>)
#include <cusparse.h>
#endif

namespace mgpu::device {

Result<std::shared_ptr<const CusparseApi>>
openCusparse(const std::vector<std::string> &names) {
  return openToolkitApi<CusparseApi>(
      names, "no libcusparse.so: install cuSPARSE (package libcusparse)",
      "install that of CUDA 12 or later (package libcusparse)",
      [](EntryPoints &entries, CusparseApi &api) {
#define MGPU_CUSPARSE_TAKE(name, ...) entries.take("cusparse" #name, api.name);
        MGPU_CUSPARSE_FUNCTIONS(MGPU_CUSPARSE_TAKE)
#undef MGPU_CUSPARSE_TAKE
        entries.take("cusparseGetErrorString", api.GetErrorString);
      });
}

tl::unexpected<Error> cusparseError(const CusparseApi &api,
                                    CusparseStatus status,
                                    std::string_view call,
                                    std::string_view where) {
  const char *words = api.GetErrorString(status);
  const bool isMemory = status == CusparseStatus::AllocFailed ||
                        status == CusparseStatus::InsufficientResources;
  return fail(isMemory || status == CusparseStatus::NotInitialized ||
                      status == CusparseStatus::ArchMismatch
                  ? ErrorKind::Absent
                  : ErrorKind::Invalid,
              fmt::format("{} {}: {} ({}); --variant cusparse=off does without "
                          "cuSPARSE",
                          call, where, words ? words : "no words",
                          uint32_t(status)));
}

// Where cusparse.h is installed: CusparseApi.h declares what it declares.
#if __has_include(<cusparse.h>)

MGPU_EQUAL(CusparseStatus::Success, CUSPARSE_STATUS_SUCCESS);
MGPU_EQUAL(CusparseStatus::NotInitialized, CUSPARSE_STATUS_NOT_INITIALIZED);
MGPU_EQUAL(CusparseStatus::AllocFailed, CUSPARSE_STATUS_ALLOC_FAILED);
MGPU_EQUAL(CusparseStatus::InvalidValue, CUSPARSE_STATUS_INVALID_VALUE);
MGPU_EQUAL(CusparseStatus::ArchMismatch, CUSPARSE_STATUS_ARCH_MISMATCH);
MGPU_EQUAL(CusparseStatus::ExecutionFailed, CUSPARSE_STATUS_EXECUTION_FAILED);
MGPU_EQUAL(CusparseStatus::InternalError, CUSPARSE_STATUS_INTERNAL_ERROR);
MGPU_EQUAL(CusparseStatus::NotSupported, CUSPARSE_STATUS_NOT_SUPPORTED);
MGPU_EQUAL(CusparseStatus::InsufficientResources,
           CUSPARSE_STATUS_INSUFFICIENT_RESOURCES);
MGPU_EQUAL(CusparseOperation::Plain, CUSPARSE_OPERATION_NON_TRANSPOSE);
MGPU_EQUAL(CusparseOperation::Transpose, CUSPARSE_OPERATION_TRANSPOSE);
MGPU_EQUAL(CusparseIndex::I32, CUSPARSE_INDEX_32I);
MGPU_EQUAL(CusparseIndex::I64, CUSPARSE_INDEX_64I);
MGPU_EQUAL(CusparseBase::Zero, CUSPARSE_INDEX_BASE_ZERO);
MGPU_EQUAL(CusparseOrder::Column, CUSPARSE_ORDER_COL);
MGPU_EQUAL(CusparseOrder::Row, CUSPARSE_ORDER_ROW);
MGPU_EQUAL(CusparseType::F32, CUDA_R_32F);
MGPU_EQUAL(CusparseType::F64, CUDA_R_64F);
MGPU_EQUAL(CusparseType::F16, CUDA_R_16F);
MGPU_EQUAL(CusparseType::Bf16, CUDA_R_16BF);
MGPU_EQUAL(CusparseVectorWay::CsrSteady, CUSPARSE_SPMV_CSR_ALG2);
MGPU_EQUAL(CusparseMatrixWay::CsrSteady, CUSPARSE_SPMM_CSR_ALG3);
MGPU_EQUAL(CusparseSampledWay::Default, CUSPARSE_SDDMM_ALG_DEFAULT);

MGPU_TWIN(CusparseApi, cusparseStatus_t, CusparseStatus);
MGPU_TWIN(CusparseApi, cusparseHandle_t, CusparseHandle);
MGPU_TWIN(CusparseApi, cusparseSpMatDescr_t, CusparseMatrix);
MGPU_TWIN(CusparseApi, cusparseConstSpMatDescr_t, const CusparseMatrixOpaque *);
MGPU_TWIN(CusparseApi, cusparseDnVecDescr_t, CusparseVector);
MGPU_TWIN(CusparseApi, cusparseConstDnVecDescr_t, const CusparseVectorOpaque *);
MGPU_TWIN(CusparseApi, cusparseDnMatDescr_t, CusparseDense);
MGPU_TWIN(CusparseApi, cusparseConstDnMatDescr_t, const CusparseDenseOpaque *);
MGPU_TWIN(CusparseApi, cusparseOperation_t, CusparseOperation);
MGPU_TWIN(CusparseApi, cusparseIndexType_t, CusparseIndex);
MGPU_TWIN(CusparseApi, cusparseIndexBase_t, CusparseBase);
MGPU_TWIN(CusparseApi, cusparseOrder_t, CusparseOrder);
MGPU_TWIN(CusparseApi, cudaDataType, CusparseType);
MGPU_TWIN(CusparseApi, cusparseSpMVAlg_t, CusparseVectorWay);
MGPU_TWIN(CusparseApi, cusparseSpMMAlg_t, CusparseMatrixWay);
MGPU_TWIN(CusparseApi, cusparseSDDMMAlg_t, CusparseSampledWay);

#define MGPU_CUSPARSE_COMPARE(name, ...)                                       \
  MGPU_SAME_CALL(CusparseApi, name, cusparse##name);
MGPU_CUSPARSE_FUNCTIONS(MGPU_CUSPARSE_COMPARE)
#undef MGPU_CUSPARSE_COMPARE

#endif

} // namespace mgpu::device
