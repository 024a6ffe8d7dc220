// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CublasLtApi.h"

#include "device/cuda/api/HeaderTwin.h"
#include "support/SharedLibrary.h"

#include <fmt/format.h>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#endif

namespace mgpu::device {

Result<std::shared_ptr<const CublasLtApi>>
openCublasLt(const std::vector<std::string> &names) {
  return openToolkitApi<CublasLtApi>(
      names, "no libcublasLt.so: install cuBLAS (package libcublas)",
      "install cuBLAS 12 or later (package libcublas)",
      [](EntryPoints &entries, CublasLtApi &api) {
#define MGPU_CUBLASLT_TAKE(name, ...) entries.take("cublasLt" #name, api.name);
        MGPU_CUBLASLT_FUNCTIONS(MGPU_CUBLASLT_TAKE)
#undef MGPU_CUBLASLT_TAKE
        entries.take("cublasLtGetStatusString", api.GetStatusString);
        entries.take("cublasLtGetVersion", api.GetVersion);
      });
}

tl::unexpected<Error> cublasLtError(const CublasLtApi &api, CublasStatus status,
                                    std::string_view call,
                                    std::string_view where) {
  const char *words = api.GetStatusString(status);
  const bool isMemory = status == CublasStatus::AllocFailed;
  return fail(isMemory || status == CublasStatus::NotInitialized ||
                      status == CublasStatus::ArchMismatch
                  ? ErrorKind::Absent
                  : ErrorKind::Invalid,
              fmt::format("{} {}: {} ({}); {}", call, where,
                          words ? words : "no words", uint32_t(status),
                          isMemory
                              ? "use smaller buffers or fewer devices on "
                                "the GPU, or --variant cublaslt=off, which "
                                "does without cuBLASLt"
                              : "--variant cublaslt=off does without "
                                "cuBLASLt"));
}

// Where cublasLt.h is installed: CublasLtApi.h declares what it declares.
#if __has_include(<cublasLt.h>)

MGPU_EQUAL(CublasStatus::Success, CUBLAS_STATUS_SUCCESS);
MGPU_EQUAL(CublasStatus::NotInitialized, CUBLAS_STATUS_NOT_INITIALIZED);
MGPU_EQUAL(CublasStatus::AllocFailed, CUBLAS_STATUS_ALLOC_FAILED);
MGPU_EQUAL(CublasStatus::InvalidValue, CUBLAS_STATUS_INVALID_VALUE);
MGPU_EQUAL(CublasStatus::ArchMismatch, CUBLAS_STATUS_ARCH_MISMATCH);
MGPU_EQUAL(CublasStatus::ExecutionFailed, CUBLAS_STATUS_EXECUTION_FAILED);
MGPU_EQUAL(CublasStatus::InternalError, CUBLAS_STATUS_INTERNAL_ERROR);
MGPU_EQUAL(CublasStatus::NotSupported, CUBLAS_STATUS_NOT_SUPPORTED);
MGPU_EQUAL(CublasCompute::F32, CUBLAS_COMPUTE_32F);
MGPU_EQUAL(CublasCompute::F64, CUBLAS_COMPUTE_64F);
MGPU_EQUAL(CublasType::F32, CUDA_R_32F);
MGPU_EQUAL(CublasType::F64, CUDA_R_64F);
MGPU_EQUAL(CublasType::F16, CUDA_R_16F);
MGPU_EQUAL(CublasType::Bf16, CUDA_R_16BF);
MGPU_EQUAL(CublasLtOperationAttribute::TransposeA, CUBLASLT_MATMUL_DESC_TRANSA);
static_assert(int32_t(CUBLAS_OP_T) == 1);
MGPU_EQUAL(CublasLtLayoutAttribute::BatchCount,
           CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
MGPU_EQUAL(CublasLtLayoutAttribute::StridedBatchOffset,
           CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
MGPU_EQUAL(CublasLtPreferenceAttribute::MaxWorkspaceBytes,
           CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
MGPU_EQUAL(CublasLtPreferenceAttribute::MinAlignmentA,
           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
MGPU_EQUAL(CublasLtPreferenceAttribute::MinAlignmentB,
           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES);
MGPU_EQUAL(CublasLtPreferenceAttribute::MinAlignmentC,
           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES);
MGPU_EQUAL(CublasLtPreferenceAttribute::MinAlignmentD,
           CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
static_assert(sizeof(CublasLtAlgorithm) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(CublasLtHeuristic) ==
              sizeof(cublasLtMatmulHeuristicResult_t));
MGPU_SAME_OFFSET(CublasLtHeuristic, workspaceBytes,
                 cublasLtMatmulHeuristicResult_t, workspaceSize);
MGPU_SAME_OFFSET(CublasLtHeuristic, state, cublasLtMatmulHeuristicResult_t,
                 state);

MGPU_TWIN(CublasLtApi, cublasStatus_t, CublasStatus);
MGPU_TWIN(CublasLtApi, cublasLtHandle_t, CublasLtHandle);
MGPU_TWIN(CublasLtApi, cublasLtMatmulDesc_t, CublasLtOperation);
MGPU_TWIN(CublasLtApi, cublasLtMatrixLayout_t, CublasLtLayout);
MGPU_TWIN(CublasLtApi, cublasLtMatmulPreference_t, CublasLtPreference);
MGPU_TWIN(CublasLtApi, cublasComputeType_t, CublasCompute);
MGPU_TWIN(CublasLtApi, cudaDataType_t, CublasType);
MGPU_TWIN(CublasLtApi, cublasLtMatmulDescAttributes_t,
          CublasLtOperationAttribute);
MGPU_TWIN(CublasLtApi, cublasLtMatrixLayoutAttribute_t,
          CublasLtLayoutAttribute);
MGPU_TWIN(CublasLtApi, cublasLtMatmulPreferenceAttributes_t,
          CublasLtPreferenceAttribute);
MGPU_TWIN(CublasLtApi, cublasLtMatmulAlgo_t, CublasLtAlgorithm);
MGPU_TWIN(CublasLtApi, cublasLtMatmulHeuristicResult_t, CublasLtHeuristic);

#define MGPU_CUBLASLT_COMPARE(name, ...)                                       \
  MGPU_SAME_CALL(CublasLtApi, name, cublasLt##name);
MGPU_CUBLASLT_FUNCTIONS(MGPU_CUBLASLT_COMPARE)
#undef MGPU_CUBLASLT_COMPARE

#endif

} // namespace mgpu::device
