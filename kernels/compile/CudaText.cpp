// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/compile/CudaText.h"

#include "support/LineText.h"

namespace mgpu::kernels {

std::string factsText(const CudaText &kernel) {
  return fmt::format(
      "name {} block {} {} {} shared {} {} {}", quoteText(kernel.name),
      kernel.block.x, kernel.block.y, kernel.block.z, kernel.dynamicSharedBytes,
      kernel.reshapable ? "reshapable" : "fixed", quoteText(kernel.reason));
}

Result<CudaText> parseFacts(std::string_view facts) {
  LineReader line("facts of a kernel,", facts, 1);
  CudaText kernel;
  MGPU_TRY(line.keyword("name"));
  MGPU_TRY_ASSIGN(kernel.name, line.quoted());
  MGPU_TRY(line.keyword("block"));
  for (uint32_t *size : {&kernel.block.x, &kernel.block.y, &kernel.block.z}) {
    MGPU_TRY_ASSIGN(*size, line.integer<uint32_t>("dimension"));
  }
  MGPU_TRY(line.keyword("shared"));
  MGPU_TRY_ASSIGN(kernel.dynamicSharedBytes,
                  line.integer<uint32_t>("byte count"));
  kernel.reshapable = line.peek() == "reshapable";
  MGPU_TRY(line.keyword(kernel.reshapable ? "reshapable" : "fixed"));
  MGPU_TRY_ASSIGN(kernel.reason, line.quoted());
  MGPU_TRY(line.expectEnd());
  return kernel;
}

} // namespace mgpu::kernels
