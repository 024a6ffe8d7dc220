// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// CudaState::wait(): polls a stream until its work is done, its deadline is
// over or another rank has failed.
#include "device/cuda/graph/CudaState.h"

#include <fmt/format.h>
#include <thread>

namespace mgpu::device {

Result<void> CudaState::showPrinted(CUstream stream, std::string_view what) {
  return check(api->cuStreamSynchronize(stream), "cuStreamSynchronize",
               fmt::format("after {} {}", what, where()));
}

Result<void> CudaState::wait(CUstream stream, std::string_view what) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
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
