// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_DEVICE_HOST_KERNELCODE_H
#define MGPU_DEVICE_HOST_KERNELCODE_H

// Where the code of loaded kernels lies, so that who handles a fault can say
// whose it is.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mgpu::device {

/// `handle` is dlopen()'s; `bytes` from the object's base on are its. Gives
/// what removeKernelCode() takes. If there are a great many kernels, the last
/// are not kept.
size_t addKernelCode(std::string_view name, void *handle, uint64_t bytes);
void removeKernelCode(size_t slot);

/// The name of the kernel whose code `address` lies in, cut to some hundred
/// letters; null where it is none's. For handlers of signals.
const char *kernelNameAt(uintptr_t address);

} // namespace mgpu::device

#endif // MGPU_DEVICE_HOST_KERNELCODE_H
