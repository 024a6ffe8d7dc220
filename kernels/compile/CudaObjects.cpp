// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaObjects.h"

#include "kernels/compile/KernelRecipe.h"

#include <algorithm>

namespace mgpu::kernels {

bool hasProducts(const std::vector<CudaText> &texts) {
  return std::any_of(texts.begin(), texts.end(), [](const CudaText &text) {
    return text.image.product.has_value();
  });
}

CudaObjects cudaObjects(const std::vector<CudaText> &texts,
                        const std::vector<std::vector<std::byte>> &cubins,
                        const std::string &arch, bool hasLibrary) {
  CudaObjects out;
  for (size_t k = 0; k < texts.size(); ++k) {
    KernelImage image = recipeOf(texts[k], arch).imageOf(cubins[k]);
    if (image.product && hasLibrary)
      image.workspaceBytes = productWorkspaceBytes;
    out.objects.push_back(encodeImage(image));
    out.workspaceBytes.push_back(image.workspaceBytes);
  }
  return out;
}

} // namespace mgpu::kernels
