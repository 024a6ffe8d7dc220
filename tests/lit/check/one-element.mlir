// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dimension of one element may have any stride: a kernel keeps the one that its operations name.
// RUN: mgpu-tune check %s | FileCheck %s
// CHECK: one-element.mlir: ok
func.func @main(%x: tensor<1x7x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>) -> (tensor<1x7x16xf32>, tensor<1x16xf32>) {
  %e = math.exp %x : tensor<1x7x16xf32>
  %s = tensor.extract_slice %e[0, 0, 0] [1, 1, 16] [1, 1, 1] : tensor<1x7x16xf32> to tensor<1x1x16xf32>
  %r = tensor.collapse_shape %s [[0, 1], [2]] : tensor<1x1x16xf32> into tensor<1x16xf32>
  %zero = arith.constant dense<0.0> : tensor<1x16xf32>
  %p = linalg.matmul ins(%r, %w : tensor<1x16xf32>, tensor<16x16xf32>) outs(%zero : tensor<1x16xf32>) -> tensor<1x16xf32>
  %n = tensor.empty() : tensor<1x16xf32>
  %bb = linalg.broadcast ins(%b : tensor<16xf32>) outs(%n : tensor<1x16xf32>) dimensions = [0]
  %q = arith.addf %p, %bb : tensor<1x16xf32>
  %y = math.tanh %q : tensor<1x16xf32>
  return %e, %y : tensor<1x7x16xf32>, tensor<1x16xf32>
}
