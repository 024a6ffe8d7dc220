// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/CudaEmitter.h"

#include "support/BuildId.h"

#include "mlir/IR/AsmState.h"
#include "llvm/Support/ManagedStatic.h"

namespace mgpu::kernels {

std::string emitterId() {
  std::string all;
  // Our code is compiled with -fPIC, so these are the functions themselves and
  // no stubs of ours.
  for (const void *function :
       {reinterpret_cast<const void *>(&emitCudaKernel),
        reinterpret_cast<const void *>(&mlir::registerAsmPrinterCLOptions),
        reinterpret_cast<const void *>(&llvm::llvm_shutdown)}) {
    std::string id = buildIdOf(function);
    if (id.empty())
      return "";
    all += (all.empty() ? "" : " ") + id;
  }
  return all;
}

} // namespace mgpu::kernels
