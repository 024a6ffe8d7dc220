// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Opcodes.h"

namespace mgpu::kernels::ptx {

const std::map<std::string_view, Operation> &operations() {
  static const auto all = [] {
    std::map<std::string_view, Operation> out;
    for (const auto &list :
         {integerOperations(), bitOperations(), floatOperations(),
          functionOperations(), compareOperations(), conversions(), moves(),
          memoryOperations(), atomicOperations(), controlOperations(),
          barrierOperations(), laneOperations(), copyOperations(),
          mbarrierOperations(), matrixOperations(), warpgroupOperations()})
      for (const Operation &each : list)
        out.emplace(each.name, each);
    return out;
  }();
  return all;
}

} // namespace mgpu::kernels::ptx
