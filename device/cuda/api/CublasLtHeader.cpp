// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where cublasLt.h is installed: CublasLtApi.h declares what it declares.
#if __has_include(<cublasLt.h>)

#include "device/cuda/api/CublasLtApi.h"

#include <cublasLt.h>

#include <type_traits>

namespace mgpu::device {

template <typename Ours, typename Theirs>
static constexpr bool isEqual(Ours ours, Theirs theirs) {
  return sizeof(Ours) == sizeof(Theirs) && uint32_t(ours) == uint32_t(theirs);
}

static_assert(isEqual(CublasStatus::Success, CUBLAS_STATUS_SUCCESS));
static_assert(isEqual(CublasStatus::NotInitialized,
                      CUBLAS_STATUS_NOT_INITIALIZED));
static_assert(isEqual(CublasStatus::AllocFailed, CUBLAS_STATUS_ALLOC_FAILED));
static_assert(isEqual(CublasStatus::InvalidValue, CUBLAS_STATUS_INVALID_VALUE));
static_assert(isEqual(CublasStatus::ArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH));
static_assert(isEqual(CublasStatus::ExecutionFailed,
                      CUBLAS_STATUS_EXECUTION_FAILED));
static_assert(isEqual(CublasStatus::InternalError,
                      CUBLAS_STATUS_INTERNAL_ERROR));
static_assert(isEqual(CublasStatus::NotSupported, CUBLAS_STATUS_NOT_SUPPORTED));
static_assert(isEqual(CublasCompute::F32, CUBLAS_COMPUTE_32F));
static_assert(isEqual(CublasCompute::F64, CUBLAS_COMPUTE_64F));
static_assert(isEqual(CublasType::F32, CUDA_R_32F));
static_assert(isEqual(CublasType::F64, CUDA_R_64F));
static_assert(isEqual(CublasType::F16, CUDA_R_16F));
static_assert(isEqual(CublasType::Bf16, CUDA_R_16BF));
static_assert(isEqual(CublasLtOperationAttribute::TransposeA,
                      CUBLASLT_MATMUL_DESC_TRANSA));
static_assert(int32_t(CUBLAS_OP_T) == 1);
static_assert(isEqual(CublasLtLayoutAttribute::BatchCount,
                      CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
static_assert(isEqual(CublasLtLayoutAttribute::StridedBatchOffset,
                      CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(isEqual(CublasLtPreferenceAttribute::MaxWorkspaceBytes,
                      CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(isEqual(CublasLtPreferenceAttribute::MinAlignmentA,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(isEqual(CublasLtPreferenceAttribute::MinAlignmentB,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(isEqual(CublasLtPreferenceAttribute::MinAlignmentC,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(isEqual(CublasLtPreferenceAttribute::MinAlignmentD,
                      CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(sizeof(CublasLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(CublasLtHeuristic) ==
              sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(CublasLtHeuristic, workspaceBytes) ==
              offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(CublasLtHeuristic, state) ==
              offsetof(cublasLtMatmulHeuristicResult_t, state));

/// Our twin of one of their types in a parameter list.
template <typename T>
struct LtTwin {
  using Type = T;
};
template <typename T>
struct LtTwin<T *> {
  using Type = typename LtTwin<T>::Type *;
};
template <typename T>
struct LtTwin<const T> {
  using Type = const typename LtTwin<T>::Type;
};
#define MGPU_TWIN(theirs, ours)                                                \
  template <>                                                                  \
  struct LtTwin<theirs> {                                                      \
    using Type = ours;                                                         \
  };
MGPU_TWIN(cublasStatus_t, CublasStatus)
MGPU_TWIN(cublasLtHandle_t, CublasLtHandle)
MGPU_TWIN(cublasLtMatmulDesc_t, CublasLtOperation)
MGPU_TWIN(cublasLtMatrixLayout_t, CublasLtLayout)
MGPU_TWIN(cublasLtMatmulPreference_t, CublasLtPreference)
MGPU_TWIN(cublasComputeType_t, CublasCompute)
MGPU_TWIN(cudaDataType_t, CublasType)
MGPU_TWIN(cublasLtMatmulDescAttributes_t, CublasLtOperationAttribute)
MGPU_TWIN(cublasLtMatrixLayoutAttribute_t, CublasLtLayoutAttribute)
MGPU_TWIN(cublasLtMatmulPreferenceAttributes_t, CublasLtPreferenceAttribute)
MGPU_TWIN(cublasLtMatmulAlgo_t, CublasLtAlgorithm)
MGPU_TWIN(cublasLtMatmulHeuristicResult_t, CublasLtHeuristic)
#undef MGPU_TWIN

template <typename F>
struct LtTwinOf;
template <typename R, typename... P>
struct LtTwinOf<R (*)(P...)> {
  using Type = typename LtTwin<R>::Type (*)(typename LtTwin<P>::Type...);
};

#define MGPU_CUBLASLT_COMPARE(name, ...)                                       \
  static_assert(std::is_same_v<decltype(CublasLtApi::name),                    \
                               LtTwinOf<decltype(&cublasLt##name)>::Type>);
MGPU_CUBLASLT_FUNCTIONS(MGPU_CUBLASLT_COMPARE)
#undef MGPU_CUBLASLT_COMPARE

} // namespace mgpu::device

#endif
