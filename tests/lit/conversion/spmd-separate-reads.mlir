// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-separate-reads | FileCheck %s

// What sixteen operands read becomes a buffer with a tensor for each of them.

// CHECK-LABEL: func.func @many
// CHECK: %[[V:.*]] = linalg.fill
// CHECK: %[[BUFFER:.*]] = bufferization.to_buffer %[[V]]
// CHECK-COUNT-16: bufferization.to_tensor %[[BUFFER]] restrict
// CHECK-NOT: %[[V]]{{[^0-9]}}
// CHECK: return
func.func @many(%n: f32) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %v = linalg.fill ins(%n : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %e0 = tensor.empty() : tensor<4xf32>
  %r0 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %r1 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<4xf32>
  %r2 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e2 : tensor<4xf32>) -> tensor<4xf32>
  %e3 = tensor.empty() : tensor<4xf32>
  %r3 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e3 : tensor<4xf32>) -> tensor<4xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %r4 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %e5 = tensor.empty() : tensor<4xf32>
  %r5 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e5 : tensor<4xf32>) -> tensor<4xf32>
  %e6 = tensor.empty() : tensor<4xf32>
  %r6 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e6 : tensor<4xf32>) -> tensor<4xf32>
  %e7 = tensor.empty() : tensor<4xf32>
  %r7 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e7 : tensor<4xf32>) -> tensor<4xf32>
  return %r7 : tensor<4xf32>
}

// An argument has memory that others name, too, and one use writes it.
// CHECK-LABEL: func.func @shared
// CHECK-NOT: to_buffer
func.func @shared(%n: f32, %v: tensor<4xf32>) -> tensor<4xf32> {
  %e0 = tensor.empty() : tensor<4xf32>
  %r0 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e0 : tensor<4xf32>) -> tensor<4xf32>
  %e1 = tensor.empty() : tensor<4xf32>
  %r1 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e1 : tensor<4xf32>) -> tensor<4xf32>
  %e2 = tensor.empty() : tensor<4xf32>
  %r2 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e2 : tensor<4xf32>) -> tensor<4xf32>
  %e3 = tensor.empty() : tensor<4xf32>
  %r3 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e3 : tensor<4xf32>) -> tensor<4xf32>
  %e4 = tensor.empty() : tensor<4xf32>
  %r4 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e4 : tensor<4xf32>) -> tensor<4xf32>
  %e5 = tensor.empty() : tensor<4xf32>
  %r5 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e5 : tensor<4xf32>) -> tensor<4xf32>
  %e6 = tensor.empty() : tensor<4xf32>
  %r6 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e6 : tensor<4xf32>) -> tensor<4xf32>
  %e7 = tensor.empty() : tensor<4xf32>
  %r7 = linalg.add ins(%v, %v : tensor<4xf32>, tensor<4xf32>) outs(%e7 : tensor<4xf32>) -> tensor<4xf32>
  %w = linalg.fill ins(%n : f32) outs(%v : tensor<4xf32>) -> tensor<4xf32>
  return %w : tensor<4xf32>
}
