// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// libcuda.so.1 for programs that open the driver by name: what it finds is what
// the program itself says (FakeLibraries.h).
#include "FakeLibraries.h"

extern "C" {

__attribute__((visibility("default"))) void *(*mgpuFakeCudaEntry)(
    const char *) = nullptr;

__attribute__((visibility("default"))) CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int, cuuint64_t,
                    CUdriverProcAddressQueryResult *status) {
  *function = mgpuFakeCudaEntry ? mgpuFakeCudaEntry(symbol) : nullptr;
  *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
}
