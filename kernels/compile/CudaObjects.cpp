// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaObjects.h"

#include "device/api/CudaKernelObject.h"

#include <algorithm>

namespace mgpu::kernels {

bool hasProducts(const std::vector<CudaText> &texts) {
  return std::any_of(texts.begin(), texts.end(), [](const CudaText &text) {
    return text.product.has_value();
  });
}

CudaObjects cudaObjects(const std::vector<CudaText> &texts,
                        std::vector<std::vector<std::byte>> cubins,
                        const std::string &arch, bool hasLibrary) {
  CudaObjects out;
  for (size_t k = 0; k < texts.size(); ++k) {
    device::CudaKernelObject object;
    object.entry = texts[k].entry;
    object.arch = arch;
    object.sourceBlock = texts[k].block;
    object.block = texts[k].launchBlock;
    object.covers = texts[k].covers;
    object.takesPart = texts[k].takesPart;
    object.dynamicSharedBytes = texts[k].dynamicSharedBytes;
    object.awaits = awaitsOn(texts[k], arch);
    object.tensorMaps = texts[k].tensorMaps;
    object.product = texts[k].product;
    if (object.product && hasLibrary)
      object.workspaceBytes = device::productWorkspaceBytes;
    object.cubin = std::move(cubins[k]);
    out.objects.push_back(device::encodeCudaKernel(object));
    out.workspaceBytes.push_back(object.workspaceBytes);
  }
  return out;
}

} // namespace mgpu::kernels
