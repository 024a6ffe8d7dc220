// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_API_CUSPARSEAPI_H
#define MGPU_DEVICE_CUDA_API_CUSPARSEAPI_H

// The entry points of cuSPARSE that the CUDA target calls, as a table: taken
// from libcusparse at run time, replaced by a double in tests. Declared here as
// CublasLtApi.h does; CusparseApi.cpp compares the two where there is
// cusparse.h.

#include "device/cuda/api/CudaApi.h"

#include <functional>
#include <vector>

namespace mgpu::device {

struct CusparseContext;
using CusparseHandle = CusparseContext *;
struct CusparseMatrixOpaque;
using CusparseMatrix = CusparseMatrixOpaque *; ///< cusparseSpMatDescr_t
struct CusparseVectorOpaque;
using CusparseVector = CusparseVectorOpaque *; ///< cusparseDnVecDescr_t
struct CusparseDenseOpaque;
using CusparseDense = CusparseDenseOpaque *; ///< cusparseDnMatDescr_t

enum class CusparseStatus : uint32_t {
  Success = 0,
  NotInitialized = 1,
  AllocFailed = 2,
  InvalidValue = 3,
  ArchMismatch = 4,
  ExecutionFailed = 6,
  InternalError = 7,
  NotSupported = 10,
  InsufficientResources = 11,
};
enum class CusparseOperation : uint32_t { Plain = 0, Transpose = 1 };
enum class CusparseIndex : uint32_t { I32 = 2, I64 = 3 };
enum class CusparseBase : uint32_t { Zero = 0 };
enum class CusparseOrder : uint32_t { Column = 1, Row = 2 };
enum class CusparseType : uint32_t { F32 = 0, F64 = 1, F16 = 2, Bf16 = 14 };
/// The algorithms that give the same bits each time, of a matrix that is not
/// transposed.
enum class CusparseVectorWay : uint32_t { CsrSteady = 3 };
enum class CusparseMatrixWay : uint32_t { CsrSteady = 12 };
enum class CusparseSampledWay : uint32_t { Default = 0 };

/// X(name without "cusparse", parameters...); all return CusparseStatus.
#define MGPU_CUSPARSE_FUNCTIONS(X)                                             \
  X(Create, CusparseHandle *handle)                                            \
  X(Destroy, CusparseHandle handle)                                            \
  X(SetStream, CusparseHandle handle, CUstream stream)                         \
  X(CreateCsr, CusparseMatrix *matrix, int64_t rows, int64_t columns,          \
    int64_t entries, void *positions, void *indices, void *values,             \
    CusparseIndex positionsType, CusparseIndex indicesType, CusparseBase base, \
    CusparseType type)                                                         \
  X(DestroySpMat, const CusparseMatrixOpaque *matrix)                          \
  X(CreateDnVec, CusparseVector *vector, int64_t size, void *values,           \
    CusparseType type)                                                         \
  X(DestroyDnVec, const CusparseVectorOpaque *vector)                          \
  X(CreateDnMat, CusparseDense *matrix, int64_t rows, int64_t columns,         \
    int64_t leading, void *values, CusparseType type, CusparseOrder order)     \
  X(DestroyDnMat, const CusparseDenseOpaque *matrix)                           \
  X(SpMV_bufferSize, CusparseHandle handle, CusparseOperation operation,       \
    const void *alpha, const CusparseMatrixOpaque *matrix,                     \
    const CusparseVectorOpaque *x, const void *beta, CusparseVector y,         \
    CusparseType compute, CusparseVectorWay way, size_t *bytes)                \
  X(SpMV, CusparseHandle handle, CusparseOperation operation,                  \
    const void *alpha, const CusparseMatrixOpaque *matrix,                     \
    const CusparseVectorOpaque *x, const void *beta, CusparseVector y,         \
    CusparseType compute, CusparseVectorWay way, void *buffer)                 \
  X(SpMM_bufferSize, CusparseHandle handle, CusparseOperation operation,       \
    CusparseOperation second, const void *alpha,                               \
    const CusparseMatrixOpaque *matrix, const CusparseDenseOpaque *b,          \
    const void *beta, CusparseDense c, CusparseType compute,                   \
    CusparseMatrixWay way, size_t *bytes)                                      \
  X(SpMM, CusparseHandle handle, CusparseOperation operation,                  \
    CusparseOperation second, const void *alpha,                               \
    const CusparseMatrixOpaque *matrix, const CusparseDenseOpaque *b,          \
    const void *beta, CusparseDense c, CusparseType compute,                   \
    CusparseMatrixWay way, void *buffer)                                       \
  X(SDDMM_bufferSize, CusparseHandle handle, CusparseOperation operation,      \
    CusparseOperation second, const void *alpha, const CusparseDenseOpaque *a, \
    const CusparseDenseOpaque *b, const void *beta, CusparseMatrix c,          \
    CusparseType compute, CusparseSampledWay way, size_t *bytes)               \
  X(SDDMM, CusparseHandle handle, CusparseOperation operation,                 \
    CusparseOperation second, const void *alpha, const CusparseDenseOpaque *a, \
    const CusparseDenseOpaque *b, const void *beta, CusparseMatrix c,          \
    CusparseType compute, CusparseSampledWay way, void *buffer)

struct CusparseApi {
#define MGPU_CUSPARSE_MEMBER(name, ...)                                        \
  CusparseStatus (*name)(__VA_ARGS__) = nullptr;
  MGPU_CUSPARSE_FUNCTIONS(MGPU_CUSPARSE_MEMBER)
#undef MGPU_CUSPARSE_MEMBER
  const char *(*GetErrorString)(CusparseStatus status) = nullptr;
};

/// Opens cuSPARSE, which is never closed again. Absent, with what to install,
/// where there is none or one without these calls. `names` is for tests.
Result<std::shared_ptr<const CusparseApi>>
openCusparse(const std::vector<std::string> &names = {"libcusparse.so.12",
                                                      "libcusparse.so.11"});

/// How a target finds it, when it first needs it.
using CusparseOpener =
    std::function<Result<std::shared_ptr<const CusparseApi>>()>;

/// "cusparseSpMV for 'x' on cuda:0: words of cuSPARSE; what to do".
tl::unexpected<Error> cusparseError(const CusparseApi &api,
                                    CusparseStatus status,
                                    std::string_view call,
                                    std::string_view where);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_API_CUSPARSEAPI_H
