// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs in streams of the caller's. One event stands for everything that was
// queued, so that graphs of one program follow each other whatever streams they
// are in.
#include "device/cuda/graph/CudaState.h"

namespace mgpu::device {

Result<void> CudaState::queue(CUstream on, CUgraphExec graph) {
  Current current(*this);
  MGPU_TRY(current.entered);
  if (!queued)
    MGPU_TRY(check(api->cuEventCreate(&queued, CU_EVENT_DISABLE_TIMING),
                   "cuEventCreate", where()));
  const std::string place = "in the caller's stream " + where();
  if (isQueued)
    MGPU_TRY(check(api->cuStreamWaitEvent(on, queued, 0), "cuStreamWaitEvent",
                   place));
  // A stream of another context is refused here, before anything runs.
  MGPU_TRY(check(api->cuEventRecord(queued, on), "cuEventRecord", place));
  MGPU_TRY(check(api->cuGraphLaunch(graph, on), "cuGraphLaunch", place));
  isQueued = true;
  return check(api->cuEventRecord(queued, on), "cuEventRecord", place);
}

Result<void> CudaState::finishQueued() {
  if (!isQueued)
    return {};
  isQueued = false;
  MGPU_TRY(checkAlive());
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY(check(api->cuStreamWaitEvent(stream, queued, 0), "cuStreamWaitEvent",
                 where()));
  return wait(stream, "a queued replay");
}

} // namespace mgpu::device
