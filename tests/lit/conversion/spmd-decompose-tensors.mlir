// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-decompose-tensors | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>, %s: f32) -> tensor<8x8xf32> {
  // A scalar that fills a tensor is folded by elementwise fusion, as a fill.
  // CHECK: linalg.fill ins(%{{.*}} : f32) outs(%{{.*}} : tensor<4x8xf32>)
  %init = tensor.splat %s : tensor<4x8xf32>
  // The text of a matrix product for GPUs is chosen by its name.
  // CHECK: linalg.matmul
  %m = linalg.matmul ins(%x, %w : tensor<4x8xf32>, tensor<8x8xf32>) outs(%init : tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK-NOT: linalg.broadcast
  // CHECK: linalg.generic
  %e = tensor.empty() : tensor<4x8xf32>
  %bb = linalg.broadcast ins(%b : tensor<8xf32>) outs(%e : tensor<4x8xf32>) dimensions = [0]
  // CHECK-NOT: tensor.concat
  // CHECK: tensor.insert_slice
  // CHECK: tensor.insert_slice
  %c = tensor.concat dim(0) %m, %bb : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %c : tensor<8x8xf32>
}
