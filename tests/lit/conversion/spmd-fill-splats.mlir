// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-fill-splats | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) {
  // Each use is written in place, so each has a fill of its own.
  // CHECK: linalg.fill
  // CHECK: linalg.matmul
  // CHECK: linalg.fill
  // CHECK: linalg.matmul
  %zero = arith.constant dense<0.0> : tensor<2x2xf32>
  %a = linalg.matmul ins(%x, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%zero : tensor<2x2xf32>) -> tensor<2x2xf32>
  %b = linalg.matmul ins(%a, %x : tensor<2x2xf32>, tensor<2x2xf32>) outs(%zero : tensor<2x2xf32>) -> tensor<2x2xf32>
  // CHECK-NOT: linalg.fill
  %two = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %a, %b, %two : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @empty
func.func @empty(%x: tensor<4xf32>, %n: f32) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-COUNT-2: tensor.empty
  %e = tensor.empty() : tensor<4xf32>
  %a = linalg.fill ins(%n : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %b = linalg.fill ins(%n : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// One fill that several products begin with becomes one for each, before it.
// CHECK-LABEL: func.func @fill
func.func @fill(%x: tensor<4x4xf32>, %n: f32) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  // CHECK: linalg.fill
  // CHECK-NEXT: linalg.matmul
  // CHECK: linalg.fill
  // CHECK-NEXT: linalg.matmul
  %e = tensor.empty() : tensor<4x4xf32>
  %f = linalg.fill ins(%n : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = linalg.matmul ins(%x, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = linalg.matmul ins(%a, %x : tensor<4x4xf32>, tensor<4x4xf32>) outs(%f : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a, %b : tensor<4x4xf32>, tensor<4x4xf32>
}

// What a loop reads alone is filled once, before it.
// CHECK-LABEL: func.func @loop
func.func @loop(%x: tensor<4x4xf32>, %n: f32) -> tensor<4x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %e = tensor.empty() : tensor<4x4xf32>
  // CHECK: linalg.fill
  // CHECK: scf.for
  // CHECK-NOT: linalg.fill
  // CHECK: return
  %f = linalg.fill ins(%n : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %x) -> tensor<4x4xf32> {
    %a = linalg.matmul ins(%f, %f : tensor<4x4xf32>, tensor<4x4xf32>) outs(%s : tensor<4x4xf32>) -> tensor<4x4xf32>
    scf.yield %a : tensor<4x4xf32>
  }
  return %r : tensor<4x4xf32>
}
