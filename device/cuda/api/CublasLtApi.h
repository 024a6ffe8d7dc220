// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_CUBLASLTAPI_H
#define MGPU_DEVICE_CUDA_API_CUBLASLTAPI_H

// The entry points of cuBLASLt that the CUDA target calls, as a table: taken
// from libcublasLt at run time, replaced by a double in tests. Declared here,
// because a machine with CUDA's headers need not have cublasLt.h;
// CublasLtApi.cpp compares the two where it has.

#include "device/cuda/api/CudaApi.h"

#include <functional>
#include <vector>

namespace mgpu::device {

struct CublasLtContext;
using CublasLtHandle = CublasLtContext *;
struct CublasLtOperationOpaque;
using CublasLtOperation = CublasLtOperationOpaque *; ///< cublasLtMatmulDesc_t
struct CublasLtLayoutOpaque;
using CublasLtLayout = CublasLtLayoutOpaque *; ///< cublasLtMatrixLayout_t
struct CublasLtPreferenceOpaque;
using CublasLtPreference = CublasLtPreferenceOpaque *;

enum class CublasStatus : uint32_t {
  Success = 0,
  NotInitialized = 1,
  AllocFailed = 3,
  InvalidValue = 7,
  ArchMismatch = 8,
  ExecutionFailed = 13,
  InternalError = 14,
  NotSupported = 15,
};
enum class CublasCompute : uint32_t { F32 = 68, F64 = 70 };
enum class CublasType : uint32_t { F32 = 0, F64 = 1, F16 = 2, Bf16 = 14 };
enum class CublasLtOperationAttribute : uint32_t {
  TransposeA = 3, ///< int32_t, 1: by rows
};
enum class CublasLtLayoutAttribute : uint32_t {
  BatchCount = 5,         ///< int32_t
  StridedBatchOffset = 6, ///< int64_t, elements
};
enum class CublasLtPreferenceAttribute : uint32_t {
  MaxWorkspaceBytes = 1, ///< uint64_t
  MinAlignmentA = 5,     ///< uint32_t, bytes
  MinAlignmentB = 6,
  MinAlignmentC = 7,
  MinAlignmentD = 8,
};

struct CublasLtAlgorithm {
  uint64_t data[8];
};
struct CublasLtHeuristic {
  CublasLtAlgorithm algorithm;
  size_t workspaceBytes;
  CublasStatus state; ///< the rest counts only if it is Success
  float waves;
  int reserved[4];
};

/// X(name without "cublasLt", parameters...); all return CublasStatus.
#define MGPU_CUBLASLT_FUNCTIONS(X)                                             \
  X(Create, CublasLtHandle *handle)                                            \
  X(Destroy, CublasLtHandle handle)                                            \
  X(MatmulDescCreate, CublasLtOperation *operation, CublasCompute compute,     \
    CublasType scale)                                                          \
  X(MatmulDescSetAttribute, CublasLtOperation operation,                       \
    CublasLtOperationAttribute attribute, const void *value, size_t bytes)     \
  X(MatmulDescDestroy, CublasLtOperation operation)                            \
  X(MatrixLayoutCreate, CublasLtLayout *layout, CublasType type,               \
    uint64_t rows, uint64_t columns, int64_t leading)                          \
  X(MatrixLayoutSetAttribute, CublasLtLayout layout,                           \
    CublasLtLayoutAttribute attribute, const void *value, size_t bytes)        \
  X(MatrixLayoutDestroy, CublasLtLayout layout)                                \
  X(MatmulPreferenceCreate, CublasLtPreference *preference)                    \
  X(MatmulPreferenceSetAttribute, CublasLtPreference preference,               \
    CublasLtPreferenceAttribute attribute, const void *value, size_t bytes)    \
  X(MatmulPreferenceDestroy, CublasLtPreference preference)                    \
  X(MatmulAlgoGetHeuristic, CublasLtHandle handle,                             \
    CublasLtOperation operation, CublasLtLayout a, CublasLtLayout b,           \
    CublasLtLayout c, CublasLtLayout d, CublasLtPreference preference,         \
    int wanted, CublasLtHeuristic *results, int *found)                        \
  X(Matmul, CublasLtHandle handle, CublasLtOperation operation,                \
    const void *alpha, const void *a, CublasLtLayout aLayout, const void *b,   \
    CublasLtLayout bLayout, const void *beta, const void *c,                   \
    CublasLtLayout cLayout, void *d, CublasLtLayout dLayout,                   \
    const CublasLtAlgorithm *algorithm, void *workspace,                       \
    size_t workspaceBytes, CUstream stream)

struct CublasLtApi {
#define MGPU_CUBLASLT_MEMBER(name, ...)                                        \
  CublasStatus (*name)(__VA_ARGS__) = nullptr;
  MGPU_CUBLASLT_FUNCTIONS(MGPU_CUBLASLT_MEMBER)
#undef MGPU_CUBLASLT_MEMBER
  const char *(*GetStatusString)(CublasStatus status) = nullptr;
  size_t (*GetVersion)() = nullptr;
};

/// Opens cuBLASLt, which is never closed again. Absent, with what to install,
/// where there is none or one without these calls. `names` is for tests.
Result<std::shared_ptr<const CublasLtApi>>
openCublasLt(const std::vector<std::string> &names = {"libcublasLt.so.13",
                                                      "libcublasLt.so.12"});

/// How a target finds it, when it first needs it.
using CublasLtOpener =
    std::function<Result<std::shared_ptr<const CublasLtApi>>()>;

/// "cublasLtMatmul for 'x' on cuda:0: words of cuBLASLt; what to do".
tl::unexpected<Error> cublasLtError(const CublasLtApi &api, CublasStatus status,
                                    std::string_view call,
                                    std::string_view where);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_CUBLASLTAPI_H
