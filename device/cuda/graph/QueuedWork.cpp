// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs that are queued: in streams of the caller's, and trips of a loop in
// two of ours by turns. One event stands for everything that was queued, so
// that graphs of one program follow each other whatever streams they are in.
#include "device/cuda/graph/CudaState.h"

#include <fmt/format.h>
#include <thread>

namespace mgpu::device {

/// By words of 32 bits, which every GPU can be asked for.
Result<void> CudaState::write(CUstream on, const HostValue &value,
                              const std::string &place) {
  // An address of cuMemHostAlloc's is the GPU's as well (unified addressing).
  const auto at = CUdeviceptr(uintptr_t(value.at));
  for (size_t byte = 0; byte < value.bytes; byte += 4)
    MGPU_TRY(check(api->cuStreamWriteValue32(
                       on, at + byte, uint32_t(value.value >> (8 * byte)),
                       CU_STREAM_WRITE_VALUE_DEFAULT),
                   "cuStreamWriteValue32", place));
  return {};
}

/// In a capture the graph would be a node of another, and the event that later
/// replays wait for would be of that, too.
Result<void> CudaState::checkNotCaptured(CUstream on,
                                         const std::string &place) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  MGPU_TRY(check(api->cuStreamGetCaptureInfo(on, &status, nullptr, nullptr,
                                             nullptr, nullptr, nullptr),
                 "cuStreamGetCaptureInfo", place));
  if (status == CU_STREAM_CAPTURE_STATUS_NONE)
    return {};
  return fail(ErrorKind::Unsupported,
              fmt::format("{}: the stream is being captured into another CUDA "
                          "graph, of which a queued replay cannot be a part: "
                          "queue it before or after the capture, or make it a "
                          "part by mgt_capture_into",
                          place));
}

Result<void> CudaState::queue(CUstream on, CUgraphExec graph,
                              std::span<const HostValue> values) {
  const std::string place = "in the caller's stream " + where();
  Current current(*this);
  MGPU_TRY(current.entered);
  MGPU_TRY(checkNotCaptured(on, place));
  return queueIn(on, place, graph, values);
}

Result<void> CudaState::queueIn(CUstream on, const std::string &place,
                                CUgraphExec graph,
                                std::span<const HostValue> values) {
  if (!queued)
    MGPU_TRY(check(api->cuEventCreate(&queued, CU_EVENT_DISABLE_TIMING),
                   "cuEventCreate", where()));
  if (isQueued)
    MGPU_TRY(check(api->cuStreamWaitEvent(on, queued, 0), "cuStreamWaitEvent",
                   place));
  // A stream of another context is refused here, before anything runs.
  MGPU_TRY(check(api->cuEventRecord(queued, on), "cuEventRecord", place));
  for (const HostValue &value : values)
    MGPU_TRY(write(on, value, place));
  MGPU_TRY(check(api->cuGraphLaunch(graph, on), "cuGraphLaunch", place));
  isQueued = true;
  return check(api->cuEventRecord(queued, on), "cuEventRecord", place);
}

Result<void> CudaState::queueNext(CUgraphExec graph,
                                  std::span<const HostValue> values) {
  Current current(*this);
  MGPU_TRY(current.entered);
  CUstream &on = turns[turn];
  turn = (turn + 1) % turns.size();
  if (!on)
    MGPU_TRY(
        check(api->cuStreamCreateWithPriority(&on, CU_STREAM_NON_BLOCKING, 0),
              "cuStreamCreateWithPriority", where()));
  else
    MGPU_TRY(wait(on, "a queued replay"));
  return queueIn(on, where(), graph, values);
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

// CudaState::wait(): polls a stream until its work is done, its deadline is
// over or another rank has failed.

Result<void> CudaState::showPrinted(CUstream stream, std::string_view what) {
  return check(api->cuStreamSynchronize(stream), "cuStreamSynchronize",
               fmt::format("after {} {}", what, where()));
}

Result<void> CudaState::wait(CUstream stream, std::string_view what) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  const BesideCaptures beside(*api); // to ask a stream is one of those calls
  MGPU_TRY(check(beside.code, "cuThreadExchangeStreamCaptureMode", where()));
  bool isTimed = options.deadline.count() > 0;
  // A short replay is polled for; a long one is not worth a busy core.
  constexpr auto busyPolling = std::chrono::microseconds(500);
  while (true) {
    CUresult code = api->cuStreamQuery(stream);
    if (code == CUDA_SUCCESS)
      return mayPrint ? showPrinted(stream, what) : Result<void>();
    if (code != CUDA_ERROR_NOT_READY)
      return check(code, "cuStreamQuery",
                   fmt::format("after {} {}", what, where()));
    log->take(); // it may call that a failure, too
    auto passed = Clock::now() - start;
    if (isTimed && passed > options.deadline) {
      std::string message =
          communicators
              ? fmt::format("{} {} did not end within {} ms: a kernel never "
                            "ends, or another rank does not take part",
                            what, where(), options.deadline.count())
              : fmt::format("{} {} did not end within {} ms; CUDA cannot stop "
                            "it, so the target is lost to this process: find "
                            "the kernel that never ends with --target host, or "
                            "allow more time",
                            what, where(), options.deadline.count());
      giveUp(message);
      return fail(ErrorKind::Invalid, message);
    }
    if (communicators && passed > busyPolling)
      if (Result<void> ok = communicators->check(); !ok) {
        Error error = std::move(ok.error());
        error.message = fmt::format("{} {}: {}", what, where(), error.message);
        giveUp(error.message);
        return fail(std::move(error));
      }
    if (passed > busyPolling)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

} // namespace mgpu::device
