// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaObjects.h"

#include <algorithm>

namespace mgpu::kernels {

bool hasProducts(const std::vector<CudaText> &texts) {
  return std::any_of(texts.begin(), texts.end(), [](const CudaText &text) {
    return text.product.has_value();
  });
}

device::CudaKernelObject cudaObject(const CudaText &text,
                                    std::vector<std::byte> cubin,
                                    const std::string &arch) {
  device::CudaKernelObject object;
  object.entry = text.entry;
  object.arch = arch;
  object.sourceBlock = text.block;
  object.block = text.launchBlock;
  object.covers = text.covers;
  object.takesPart = text.takesPart;
  object.dynamicSharedBytes = text.dynamicSharedBytes;
  object.awaits = awaitsOn(text, arch);
  object.tensorMaps = text.tensorMaps;
  object.product = text.product;
  object.cubin = std::move(cubin);
  return object;
}

CudaObjects cudaObjects(const std::vector<CudaText> &texts,
                        std::vector<std::vector<std::byte>> cubins,
                        const std::string &arch, bool hasLibrary) {
  CudaObjects out;
  for (size_t k = 0; k < texts.size(); ++k) {
    device::CudaKernelObject object =
        cudaObject(texts[k], std::move(cubins[k]), arch);
    if (object.product && hasLibrary)
      object.workspaceBytes = device::productWorkspaceBytes;
    out.objects.push_back(device::encodeCudaKernel(object));
    out.workspaceBytes.push_back(object.workspaceBytes);
  }
  return out;
}

} // namespace mgpu::kernels
