// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of calls, and GetPjrtApi, which is all that the library shows.
#include "pipeline/pjrt/Errors.h"
#include "pipeline/pjrt/Extensions.h"
#include "pipeline/pjrt/Handlers.h"

namespace mgpu::pipeline::pjrt {

//===----------------------------------------------------------------------===//
// Calls that no program can make use of here
//===----------------------------------------------------------------------===//

#define MGPU_PJRT_UNSUPPORTED(name, reason)                                    \
  PJRT_Error *name(PJRT_##name##_Args &) {                                     \
    return unsupported("PJRT_" #name ": " reason);                             \
  }

MGPU_PJRT_UNSUPPORTED(Client_UpdateGlobalProcessInfo,
                      "the client is of one process")
MGPU_PJRT_UNSUPPORTED(Executable_OptimizedProgram,
                      "an executable is a plan and kernels, and has no HLO")
MGPU_PJRT_UNSUPPORTED(CopyToDeviceStream_Destroy,
                      "programs that send and receive on the host are refused")
MGPU_PJRT_UNSUPPORTED(CopyToDeviceStream_AddChunk,
                      "programs that send and receive on the host are refused")
MGPU_PJRT_UNSUPPORTED(CopyToDeviceStream_TotalBytes,
                      "programs that send and receive on the host are refused")
MGPU_PJRT_UNSUPPORTED(CopyToDeviceStream_GranuleSize,
                      "programs that send and receive on the host are refused")
MGPU_PJRT_UNSUPPORTED(CopyToDeviceStream_CurrentBytes,
                      "programs that send and receive on the host are refused")
MGPU_PJRT_UNSUPPORTED(AsyncHostToDeviceTransferManager_AddMetadata,
                      "transfers have no use for it")
MGPU_PJRT_UNSUPPORTED(AsyncHostToDeviceTransferManager_TransferLiteral,
                      "use PJRT_AsyncHostToDeviceTransferManager_TransferData")
MGPU_PJRT_UNSUPPORTED(Buffer_CopyRawToHostFuture,
                      "use PJRT_Buffer_CopyRawToHost")
MGPU_PJRT_UNSUPPORTED(Buffer_DonateWithControlDependency,
                      "buffers are donated by executables alone")
MGPU_PJRT_UNSUPPORTED(Device_PoisonExecution,
                      "an execution has ended when its call returns")
MGPU_PJRT_UNSUPPORTED(Device_CreateAsyncTrackingEvent,
                      "an execution has ended when its call returns")
MGPU_PJRT_UNSUPPORTED(AsyncTrackingEvent_Destroy,
                      "an execution has ended when its call returns")
MGPU_PJRT_UNSUPPORTED(TopologyDescription_MakeCanonicalShapeForMemorySpace,
                      "shapes are the same in each memory, row-major")

} // namespace mgpu::pipeline::pjrt

extern "C" __attribute__((visibility("default"))) const PJRT_Api *
GetPjrtApi(void) {
  using namespace mgpu::pipeline::pjrt;
  static const PJRT_Api api = {
      sizeof(PJRT_Api),
      extensions(),
      {sizeof(PJRT_Api_Version), nullptr, PJRT_API_MAJOR, PJRT_API_MINOR},
#define CALL(name, ...) enter<PJRT_##name##_Args, name>,
#define CALL_WITHOUT_ERROR(name, ...) enter<PJRT_##name##_Args, name>,
#include "pipeline/pjrt/Calls.inc"
  };
  return &api;
}
