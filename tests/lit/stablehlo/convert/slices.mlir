// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg | FileCheck %s

// Where host code knows the places of parts they are views: the element of a
// row of numbers is one that it knows. Indices of a loop that may stay rolled
// are computed by kernels.
// CHECK-LABEL: func.func @main
// CHECK: scf.for
// CHECK-NOT: tensor.extract_slice
// CHECK: scf.for
// CHECK: arith.muli
// CHECK: tensor.extract_slice
// CHECK: tensor.insert_slice
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %row = stablehlo.constant dense<[0, 2, 4, 6]> : tensor<4xi32>
  %loop:2 = stablehlo.while(%i = %zero, %acc = %x) : tensor<i32>, tensor<8x4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %own = stablehlo.dynamic_slice %acc, %i, %zero, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %inner:2 = stablehlo.while(%k = %zero, %now = %acc) : tensor<i32>, tensor<8x4xf32>
        cond {
          %go = stablehlo.compare LT, %k, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %go : tensor<i1>
        } do {
          %start = stablehlo.dynamic_slice %row, %k, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
          %at = stablehlo.reshape %start : (tensor<1xi32>) -> tensor<i32>
          %part = stablehlo.dynamic_slice %now, %at, %zero, sizes = [1, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
          %sum = stablehlo.add %part, %own : tensor<1x4xf32>
          %put = stablehlo.dynamic_update_slice %now, %sum, %at, %zero : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
          %next = stablehlo.add %k, %one : tensor<i32>
          stablehlo.return %next, %put : tensor<i32>, tensor<8x4xf32>
        }
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %inner#1 : tensor<i32>, tensor<8x4xf32>
    }
  return %loop#1 : tensor<8x4xf32>
}
