// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tuner/record/OutputAgreement.h"

#include <fmt/format.h>

namespace mgpu::tuner {

std::string toText(const Agreement &agreement) {
  return agreement.isSameBits()
             ? "the same bits"
             : fmt::format("within {:.2g} % of the tolerance",
                           100 * agreement.share);
}

} // namespace mgpu::tuner
