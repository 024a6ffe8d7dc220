// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "device/cuda/api/CudaError.h"

#include <algorithm>
#include <fmt/format.h>

namespace mgpu::device {

/// Enough for a failure and its cause.
static constexpr size_t maxLogBytes = 2000;

CudaLog::CudaLog(const CudaApi &api) : api(api) {
  if (!api.cuLogsRegisterCallback || !api.cuLogsUnregisterCallback ||
      api.cuLogsRegisterCallback(record, this, &handle) != CUDA_SUCCESS)
    handle = nullptr; // its words are missed, nothing else
}

CudaLog::~CudaLog() {
  if (handle)
    api.cuLogsUnregisterCallback(handle);
}

void CUDA_CB CudaLog::record(void *self, CUlogLevel, char *message,
                             size_t length) {
  auto *log = static_cast<CudaLog *>(self);
  std::string_view words(message, length);
  while (!words.empty() &&
         (words.back() == '\n' || words.back() == '\0' || words.back() == ' '))
    words.remove_suffix(1);
  std::lock_guard<std::mutex> lock(log->mutex);
  if (words.empty())
    return;
  if (log->text.size() > maxLogBytes)
    log->text.clear(); // the last words are those of the failure
  if (!log->text.empty())
    log->text += "; ";
  log->text += words.substr(0, maxLogBytes);
  log->hasText = true;
}

std::string CudaLog::take() {
  if (!hasText.load(std::memory_order_acquire))
    return {};
  std::lock_guard<std::mutex> lock(mutex);
  hasText = false;
  return std::exchange(text, {});
}

namespace {

struct Advice {
  ErrorKind kind;
  const char *text;
};

Advice adviceOn(CUresult code) {
  switch (code) {
  case CUDA_ERROR_NO_DEVICE:
    return {ErrorKind::Absent,
            "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES, "
            "or use --target host"};
  case CUDA_ERROR_STUB_LIBRARY:
    return {ErrorKind::Absent,
            "the toolkit's stub library was found instead of a driver: take "
            "its folder off LD_LIBRARY_PATH"};
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
  case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
    return {ErrorKind::Absent,
            "libcuda and the kernel's driver differ: reboot after the update, "
            "or take the compat package off LD_LIBRARY_PATH"};
  case CUDA_ERROR_SYSTEM_NOT_READY:
    return {ErrorKind::Absent,
            "the system's services are not up: start nvidia-fabricmanager"};
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    return {ErrorKind::Absent,
            "another process has the GPU to itself: wait for it, or set the "
            "compute mode to default"};
  case CUDA_ERROR_OUT_OF_MEMORY:
    return {ErrorKind::Absent,
            "the GPU's memory is taken: free it, or use fewer devices on it"};
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_CONTAINED: // cuda.h 2758: hardware, or an access over nvlink
  case CUDA_ERROR_EXTERNAL_DEVICE: // 3136
  case CUDA_ERROR_UNKNOWN:
    return {ErrorKind::Absent,
            "the GPU is lost to this process: look at dmesg for its Xid"};
  case CUDA_ERROR_MPS_CLIENT_TERMINATED: // 3056
    return {ErrorKind::Absent,
            "the MPS server ended this client: look at its log, and start the "
            "program again"};
  case CUDA_ERROR_CONTEXT_IS_DESTROYED: // 2886
    return {ErrorKind::Usage,
            "the GPU's primary context was ended, by cudaDeviceReset or the "
            "like: close the target before that"};
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
  case CUDA_ERROR_INVALID_IMAGE:
    return {ErrorKind::Invalid,
            "the kernel is not compiled for this GPU and driver: compile it "
            "again"};
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_TENSOR_MEMORY_LEAK: // 2986
    return {ErrorKind::Invalid,
            "a kernel of the program faulted and its device is lost to this "
            "process: run it on --target host to find where"};
  case CUDA_ERROR_NOT_SUPPORTED:
    return {ErrorKind::Unsupported, "this GPU or driver cannot do it"};
  case CUDA_ERROR_NOT_PERMITTED:
    return {ErrorKind::Absent, "the driver does not permit it"};
  default:
    return {ErrorKind::Internal, ""};
  }
}

} // namespace

bool isSticky(CUresult code) {
  // All of which cuda.h says that the process must be terminated and
  // relaunched; and what leaves no context or no GPU to go on with.
  constexpr CUresult sticky[] = {CUDA_ERROR_ILLEGAL_ADDRESS,
                                 CUDA_ERROR_MISALIGNED_ADDRESS,
                                 CUDA_ERROR_INVALID_ADDRESS_SPACE,
                                 CUDA_ERROR_ILLEGAL_INSTRUCTION,
                                 CUDA_ERROR_INVALID_PC,
                                 CUDA_ERROR_HARDWARE_STACK_ERROR,
                                 CUDA_ERROR_LAUNCH_FAILED,
                                 CUDA_ERROR_ASSERT,
                                 CUDA_ERROR_LAUNCH_TIMEOUT,
                                 CUDA_ERROR_ECC_UNCORRECTABLE,
                                 CUDA_ERROR_NVLINK_UNCORRECTABLE,
                                 CUDA_ERROR_CONTAINED,
                                 CUDA_ERROR_CONTEXT_IS_DESTROYED,
                                 CUDA_ERROR_TENSOR_MEMORY_LEAK,
                                 CUDA_ERROR_MPS_CLIENT_TERMINATED,
                                 CUDA_ERROR_EXTERNAL_DEVICE,
                                 CUDA_ERROR_UNKNOWN};
  return std::find(std::begin(sticky), std::end(sticky), code) !=
         std::end(sticky);
}

tl::unexpected<Error> cudaError(const CudaApi &api, CUresult code,
                                std::string_view call, std::string_view where,
                                std::string_view logged) {
  const char *name = nullptr, *text = nullptr;
  if (api.cuGetErrorName(code, &name) != CUDA_SUCCESS || !name)
    name = "an error this driver has no name for";
  if (api.cuGetErrorString(code, &text) != CUDA_SUCCESS || !text)
    text = "no description";
  Advice advice = adviceOn(code);
  std::string message =
      fmt::format("{} {}: {} = {} ({})", call, where, name, int(code), text);
  if (!logged.empty())
    message += fmt::format("; CUDA says: {}", logged);
  if (*advice.text)
    message += fmt::format("; {}", advice.text);
  return fail(advice.kind, std::move(message));
}

} // namespace mgpu::device
