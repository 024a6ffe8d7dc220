// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-tune run %s | FileCheck %s

// Triangular systems, of one right side and of two; a loop of a while; a
// scatter of one thread.
// CHECK: fetch
func.func @main() {
  %a = stablehlo.constant dense<[[2.0, 0.0], [1.0, 4.0]]> : tensor<2x2xf32>
  %b = stablehlo.constant dense<[[4.0], [10.0]]> : tensor<2x1xf32>
  %x = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  check.expect_eq_const %x, dense<[[2.0], [2.0]]> : tensor<2x1xf32>
  // x a = c, so x is found from its last element on.
  %c = stablehlo.constant dense<[[4.0, 8.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %y = "stablehlo.triangular_solve"(%a, %c) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  check.expect_eq_const %y, dense<[[1.0, 2.0], [1.0, 1.0]]> : tensor<2x2xf32>

  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  %loop:2 = stablehlo.while(%i = %zero, %sum = %b) : tensor<i32>, tensor<2x1xf32>
    cond {
      %go = stablehlo.compare LT, %i, %ten, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %more = stablehlo.add %sum, %b : tensor<2x1xf32>
      stablehlo.return %next, %more : tensor<i32>, tensor<2x1xf32>
    }
  check.expect_eq_const %loop#0, dense<10> : tensor<i32>
  check.expect_eq_const %loop#1, dense<[[44.0], [110.0]]> : tensor<2x1xf32>

  %v = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %at = stablehlo.constant dense<[[2], [0], [2], [5]]> : tensor<4x1xi32>
  %u = stablehlo.constant dense<[10.0, 20.0, 30.0, 40.0]> : tensor<4xf32>
  %s = "stablehlo.scatter"(%v, %at, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %0 = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<3xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<3xf32>
  check.expect_eq_const %s, dense<[21.0, 2.0, 43.0]> : tensor<3xf32>
  return
}
