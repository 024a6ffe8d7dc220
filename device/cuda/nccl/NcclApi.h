// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_CUDA_NCCL_NCCLAPI_H
#define MGPU_DEVICE_CUDA_NCCL_NCCLAPI_H

// The entry points of NCCL that the CUDA target calls, as a table: taken from
// libnccl at run time, replaced by a double in tests. Declared here, because a
// machine with CUDA's headers need not have nccl.h; NcclApi.cpp compares the
// two where it has.

#include "device/cuda/api/CudaApi.h"
#include "support/Types.h"

#include <climits>
#include <type_traits>

namespace mgpu::device {

struct NcclCommunicator; ///< ncclComm
using NcclComm = NcclCommunicator *;

struct NcclWindowMemory; ///< ncclWindow_vidmem
using NcclWindow = NcclWindowMemory *;
/// A window's flag: collectives are given the same place in it on every rank.
inline constexpr int ncclSymmetric = 1;
/// A window's memory begins at a multiple of it.
inline constexpr size_t ncclWindowAlignment = 4096;
/// The first version that has windows.
inline constexpr int ncclWithWindows = 22700;

struct NcclId {
  char bytes[128]; ///< NCCL_UNIQUE_ID_BYTES
};

enum class NcclResult : uint32_t {
  Success,
  UnhandledCudaError,
  SystemError,
  InternalError,
  InvalidArgument,
  InvalidUsage,
  RemoteError,
  InProgress,
};

enum class NcclReduction : uint32_t { Sum, Prod, Max, Min };

enum class NcclType : uint32_t {
  Int8 = 0,
  Int32 = 2,
  Int64 = 4,
  Float16 = 6,
  Float32 = 7,
  Float64 = 8,
  Bfloat16 = 9,
  Float8E4M3 = 10,
  Float8E5M2 = 11,
};

/// The ncclConfig_t of NCCL 2.27, all of it. For an older NCCL, `size` and
/// `version` name the head that 2.14 had; every later NCCL takes that and fills
/// in the rest. It looks at each byte up to `size`: none may be padding.
struct NcclConfig {
  static constexpr size_t headSize = 24;
  static constexpr unsigned int wholeVersion = 22700;

  size_t size = headSize;
  unsigned int magic = 0xcafebeef;
  unsigned int version = 21400;
  /// Calls return at once with InProgress, so that one that waits for a rank
  /// that died can be given up and the communicator aborted.
  int blocking = 0;
  int cgaClusterSize = INT_MIN; ///< undefined, as all of these
  int minCtas = INT_MIN, maxCtas = INT_MIN;
  const char *netName = nullptr;
  int splitShare = INT_MIN, trafficClass = INT_MIN;
  const char *commName = nullptr;
  int collnetEnable = INT_MIN, ctaPolicy = INT_MIN, shrinkShare = INT_MIN;
  int nvlsCtas = INT_MIN;
};
static_assert(offsetof(NcclConfig, minCtas) == NcclConfig::headSize);
static_assert(std::has_unique_object_representations_v<NcclConfig>);
/// The first version that takes the policy ZERO.
inline constexpr int ncclWithCtaPolicyZero = 22800;
/// Thread blocks of a collective, at most (MAXCHANNELS).
inline constexpr int ncclMostCtas = 64;

/// X(name without "nccl", parameters...); all return NcclResult.
#define MGPU_NCCL_FUNCTIONS(X)                                                 \
  X(GetVersion, int *version)                                                  \
  X(GetUniqueId, NcclId *id)                                                   \
  X(CommInitRankConfig, NcclComm *comm, int ranks, NcclId id, int rank,        \
    NcclConfig *config)                                                        \
  X(CommGetAsyncError, NcclComm comm, NcclResult *error)                       \
  X(CommFinalize, NcclComm comm)                                               \
  X(CommDestroy, NcclComm comm)                                                \
  X(CommAbort, NcclComm comm)                                                  \
  X(GroupStart)                                                                \
  X(GroupEnd)                                                                  \
  X(AllReduce, const void *send, void *recv, size_t count, NcclType type,      \
    NcclReduction reduction, NcclComm comm, CUstream stream)                   \
  X(ReduceScatter, const void *send, void *recv, size_t recvCount,             \
    NcclType type, NcclReduction reduction, NcclComm comm, CUstream stream)    \
  X(AllGather, const void *send, void *recv, size_t sendCount, NcclType type,  \
    NcclComm comm, CUstream stream)                                            \
  X(Broadcast, const void *send, void *recv, size_t count, NcclType type,      \
    int root, NcclComm comm, CUstream stream)                                  \
  X(Send, const void *send, size_t count, NcclType type, int peer,             \
    NcclComm comm, CUstream stream)                                            \
  X(Recv, void *recv, size_t count, NcclType type, int peer, NcclComm comm,    \
    CUstream stream)

/// Null where NCCL is older than 2.27.
#define MGPU_NCCL_OPTIONAL(X)                                                  \
  X(MemAlloc, void **memory, size_t size)                                      \
  X(MemFree, void *memory)                                                     \
  X(CommWindowRegister, NcclComm comm, void *memory, size_t size,              \
    NcclWindow *window, int flags)                                             \
  X(CommWindowDeregister, NcclComm comm, NcclWindow window)

struct NcclApi {
#define MGPU_NCCL_MEMBER(name, ...) NcclResult (*name)(__VA_ARGS__) = nullptr;
  MGPU_NCCL_FUNCTIONS(MGPU_NCCL_MEMBER)
  MGPU_NCCL_OPTIONAL(MGPU_NCCL_MEMBER)
#undef MGPU_NCCL_MEMBER
  const char *(*GetErrorString)(NcclResult result) = nullptr;
  const char *(*GetLastError)(NcclComm comm) = nullptr;
  int version = 0; ///< 22809 is 2.28.9
};

/// "2.28.9" of 22809.
std::string ncclVersionText(int version);

/// Opens NCCL, which is never closed again. Absent, with what to install, where
/// there is none or an older one than 2.14. `name` is for tests.
Result<std::shared_ptr<const NcclApi>>
openNccl(const std::string &name = "libnccl.so.2");

/// "ncclAllReduce on cuda:0: words of NCCL (its last error); what to do", as
/// cudaError() does for the driver. `comm` may be null.
tl::unexpected<Error> ncclError(const NcclApi &api, NcclResult code,
                                std::string_view call, std::string_view where,
                                NcclComm comm);

} // namespace mgpu::device

#endif // MGPU_DEVICE_CUDA_NCCL_NCCLAPI_H
