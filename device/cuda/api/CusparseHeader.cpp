// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where cusparse.h is installed: CusparseApi.h declares what it declares.
#if __has_include(<cusparse.h>)

#include "device/cuda/api/CusparseApi.h"

#include <cusparse.h>

#include <type_traits>

namespace mgpu::device {

template <typename Ours, typename Theirs>
static constexpr bool isTwin(Ours ours, Theirs theirs) {
  return sizeof(Ours) == sizeof(Theirs) && uint32_t(ours) == uint32_t(theirs);
}

static_assert(isTwin(CusparseStatus::Success, CUSPARSE_STATUS_SUCCESS));
static_assert(isTwin(CusparseStatus::NotInitialized,
                     CUSPARSE_STATUS_NOT_INITIALIZED));
static_assert(isTwin(CusparseStatus::AllocFailed,
                     CUSPARSE_STATUS_ALLOC_FAILED));
static_assert(isTwin(CusparseStatus::InvalidValue,
                     CUSPARSE_STATUS_INVALID_VALUE));
static_assert(isTwin(CusparseStatus::ArchMismatch,
                     CUSPARSE_STATUS_ARCH_MISMATCH));
static_assert(isTwin(CusparseStatus::ExecutionFailed,
                     CUSPARSE_STATUS_EXECUTION_FAILED));
static_assert(isTwin(CusparseStatus::InternalError,
                     CUSPARSE_STATUS_INTERNAL_ERROR));
static_assert(isTwin(CusparseStatus::NotSupported,
                     CUSPARSE_STATUS_NOT_SUPPORTED));
static_assert(isTwin(CusparseStatus::InsufficientResources,
                     CUSPARSE_STATUS_INSUFFICIENT_RESOURCES));
static_assert(isTwin(CusparseOperation::Plain,
                     CUSPARSE_OPERATION_NON_TRANSPOSE));
static_assert(isTwin(CusparseOperation::Transpose,
                     CUSPARSE_OPERATION_TRANSPOSE));
static_assert(isTwin(CusparseIndex::I32, CUSPARSE_INDEX_32I));
static_assert(isTwin(CusparseIndex::I64, CUSPARSE_INDEX_64I));
static_assert(isTwin(CusparseBase::Zero, CUSPARSE_INDEX_BASE_ZERO));
static_assert(isTwin(CusparseOrder::Column, CUSPARSE_ORDER_COL));
static_assert(isTwin(CusparseOrder::Row, CUSPARSE_ORDER_ROW));
static_assert(isTwin(CusparseType::F32, CUDA_R_32F));
static_assert(isTwin(CusparseType::F64, CUDA_R_64F));
static_assert(isTwin(CusparseType::F16, CUDA_R_16F));
static_assert(isTwin(CusparseType::Bf16, CUDA_R_16BF));
static_assert(isTwin(CusparseVectorWay::CsrSteady, CUSPARSE_SPMV_CSR_ALG2));
static_assert(isTwin(CusparseMatrixWay::CsrSteady, CUSPARSE_SPMM_CSR_ALG3));
static_assert(isTwin(CusparseSampledWay::Default, CUSPARSE_SDDMM_ALG_DEFAULT));

/// Our twin of one of their types in a parameter list.
template <typename T>
struct SparseTwin {
  using Type = T;
};
#define MGPU_TWIN(theirs, ours)                                                \
  template <>                                                                  \
  struct SparseTwin<theirs> {                                                  \
    using Type = ours;                                                         \
  };                                                                           \
  template <>                                                                  \
  struct SparseTwin<theirs *> {                                                \
    using Type = ours *;                                                       \
  };
MGPU_TWIN(cusparseStatus_t, CusparseStatus)
MGPU_TWIN(cusparseHandle_t, CusparseHandle)
MGPU_TWIN(cusparseSpMatDescr_t, CusparseMatrix)
MGPU_TWIN(cusparseConstSpMatDescr_t, const CusparseMatrixOpaque *)
MGPU_TWIN(cusparseDnVecDescr_t, CusparseVector)
MGPU_TWIN(cusparseConstDnVecDescr_t, const CusparseVectorOpaque *)
MGPU_TWIN(cusparseDnMatDescr_t, CusparseDense)
MGPU_TWIN(cusparseConstDnMatDescr_t, const CusparseDenseOpaque *)
MGPU_TWIN(cusparseOperation_t, CusparseOperation)
MGPU_TWIN(cusparseIndexType_t, CusparseIndex)
MGPU_TWIN(cusparseIndexBase_t, CusparseBase)
MGPU_TWIN(cusparseOrder_t, CusparseOrder)
MGPU_TWIN(cudaDataType, CusparseType)
MGPU_TWIN(cusparseSpMVAlg_t, CusparseVectorWay)
MGPU_TWIN(cusparseSpMMAlg_t, CusparseMatrixWay)
MGPU_TWIN(cusparseSDDMMAlg_t, CusparseSampledWay)
#undef MGPU_TWIN

template <typename F>
struct SparseTwinOf;
template <typename R, typename... P>
struct SparseTwinOf<R (*)(P...)> {
  using Type =
      typename SparseTwin<R>::Type (*)(typename SparseTwin<P>::Type...);
};

#define MGPU_CUSPARSE_COMPARE(name, ...)                                       \
  static_assert(                                                               \
      std::is_same_v<decltype(CusparseApi::name),                              \
                     SparseTwinOf<decltype(&cusparse##name)>::Type>);
MGPU_CUSPARSE_FUNCTIONS(MGPU_CUSPARSE_COMPARE)
#undef MGPU_CUSPARSE_COMPARE

} // namespace mgpu::device

#endif
