// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Each thread solves a system of its own, of which nobody is warned: batches of two dimensions, a system by rows.
// argument a: 2x2x2x2xf32 = 4 0 0 4 9 0 3 5 1 0 0 1 16 0 4 2
// argument l: 2x2x2xf32 = 1 0 2 1 1 0 3 1
// argument b: 2x1x2xf32 = 1 4 2 7
// expected r0: 2x2x2x2xf32 = 2 0 0 2 3 0 1 2 1 0 0 1 4 0 1 1
// expected r1: 2x1x2xf32 = 1 2 2 1
func.func @main(%a: tensor<2x2x2x2xf32>, %l: tensor<2x2x2xf32>, %b: tensor<2x1x2xf32>) -> (tensor<2x2x2x2xf32>, tensor<2x1x2xf32>) {
  %c = stablehlo.cholesky %a, lower = true : tensor<2x2x2x2xf32>
  %x = "stablehlo.triangular_solve"(%l, %b) <{left_side = false, lower = true, transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}> : (tensor<2x2x2xf32>, tensor<2x1x2xf32>) -> tensor<2x1x2xf32>
  return %c, %x : tensor<2x2x2x2xf32>, tensor<2x1x2xf32>
}
