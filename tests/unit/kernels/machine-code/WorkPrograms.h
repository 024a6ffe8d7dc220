// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_TESTS_UNIT_KERNELS_MACHINECODE_WORKPROGRAMS_H
#define MGPU_TESTS_UNIT_KERNELS_MACHINECODE_WORKPROGRAMS_H

// Programs of which it is known which forms are slow.

#include "MachineCode.h"

namespace mgpu::kernels {

inline std::string elementwise(const std::string &element) {
  const std::string type = "16384x4096x" + element;
  return programOn({type, type, type},
                   "  linalg.mul ins(%b0, %b1 : memref<" + type + ">, memref<" +
                       type + ">) outs(%b2 : memref<" + type + ">)\n");
}

inline std::string transposition() {
  return programOn({"8192x8192xf32", "8192x8192xf32"},
                   "  linalg.transpose ins(%b0 : memref<8192x8192xf32>) "
                   "outs(%b1 : memref<8192x8192xf32>) permutation = [1, 0]\n");
}

inline std::string rowSoftmax(const std::string &element) {
  const std::string type = "8192x4096x" + element;
  return programOn({type, type}, "  linalg.softmax dimension(1) ins(%b0 : "
                                 "memref<" +
                                     type + ">) outs(%b1 : memref<" + type +
                                     ">)\n");
}

} // namespace mgpu::kernels

#endif // MGPU_TESTS_UNIT_KERNELS_MACHINECODE_WORKPROGRAMS_H
