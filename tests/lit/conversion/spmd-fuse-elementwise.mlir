// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-fuse-elementwise | FileCheck %s

#id = affine_map<(i) -> (i)>

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<8xf32>, %w: tensor<8x8xf32>) -> (tensor<2x4xf32>, tensor<2x4x8xf32>) {
  // Two operations and the reshape between them are one.
  // CHECK: linalg.generic
  // CHECK: math.exp
  // CHECK-NEXT: math.tanh
  // CHECK-NOT: math
  %e = tensor.empty() : tensor<8xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.exp %in : f32
    linalg.yield %y : f32
  } -> tensor<8xf32>
  %b = tensor.expand_shape %a [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %f = tensor.empty() : tensor<2x4xf32>
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<2x4xf32>) outs(%f : tensor<2x4xf32>) {
  ^bb0(%in: f32, %out: f32):
    %y = math.tanh %in : f32
    linalg.yield %y : f32
  } -> tensor<2x4xf32>
  // CHECK: linalg.matmul
  // CHECK: tensor.expand_shape
  %m = linalg.matmul ins(%w, %w : tensor<8x8xf32>, tensor<8x8xf32>) outs(%w : tensor<8x8xf32>) -> tensor<8x8xf32>
  %n = tensor.expand_shape %m [[0, 1], [2]] output_shape [2, 4, 8] : tensor<8x8xf32> into tensor<2x4x8xf32>
  return %c, %n : tensor<2x4xf32>, tensor<2x4x8xf32>
}
