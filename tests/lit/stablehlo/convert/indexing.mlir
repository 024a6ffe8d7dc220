// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<10x4xf32>, %at: tensor<3x1xi32>, %u: tensor<3x4xf32>, %i: tensor<i32>)
    -> (tensor<3x4xf32>, tensor<10x4xf32>, tensor<2x4xf32>, tensor<4xf32>) {
  // Indices are clamped, so that a slice lies within.
  // CHECK: linalg.generic
  // CHECK: arith.maxsi
  // CHECK: arith.minsi
  // CHECK: tensor.extract
  %0 = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<10x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  // A thread for each column, which takes the rows in order.
  // CHECK: scf.forall (%[[T:.*]]) in (4)
  // CHECK: scf.for
  // CHECK: arith.cmpi ult
  // CHECK: scf.if
  // CHECK: arith.addf
  %1 = "stablehlo.scatter"(%x, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<10x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<10x4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  // CHECK: linalg.generic
  // CHECK: tensor.extract %{{.*}}[] : tensor<i32>
  %2 = stablehlo.dynamic_slice %x, %i, %zero, sizes = [2, 4] : (tensor<10x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  %row = stablehlo.slice %u [0:1, 0:4] : (tensor<3x4xf32>) -> tensor<1x4xf32>
  %keys = stablehlo.reshape %row : (tensor<1x4xf32>) -> tensor<4xf32>
  // Two rounds of merging sort four elements.
  // CHECK-COUNT-2: scf.for
  %3 = "stablehlo.sort"(%keys) <{dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3 : tensor<3x4xf32>, tensor<10x4xf32>, tensor<2x4xf32>, tensor<4xf32>
}
