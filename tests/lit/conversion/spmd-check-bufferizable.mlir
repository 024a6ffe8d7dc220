// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-check-bufferizable --verify-diagnostics

func.func @main(%x: tensor<8x6xf32>, %at: tensor<3x1xindex>) -> tensor<3x6xf32> {
  // expected-error @below {{'tensor.gather' op is not supported on tensors: it has no form on buffers; write it with linalg.generic}}
  %z = tensor.gather %x[%at] gather_dims([0]) : (tensor<8x6xf32>, tensor<3x1xindex>) -> tensor<3x6xf32>
  return %z : tensor<3x6xf32>
}
