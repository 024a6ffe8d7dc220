// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A batching dimension between others, indices of two dimensions, windows that replace.
// argument a: 8x2x3xf32 = -7.0 -5.0 -4.0 6.0 -4.0 -7.0 -2.0 3.0 -1.0 -5.0 -7.0 -8.0 -1.0 -6.0 1.0 3.0 -3.0 0.0 -8.0 0.0 -6.0 -1.0 -8.0 -5.0 -2.0 -1.0 -9.0 7.0 -2.0 -6.0 -6.0 4.0 -2.0 -5.0 -1.0 -6.0 -7.0 -4.0 8.0 -8.0 0.0 7.0 -1.0 -3.0 1.0 -6.0 3.0 -9.0
// argument i: 3x2x1xi32 = 4 -1 -1 1 6 3
// argument u: 3x2x3xf32 = -2.0 1.0 -8.0 8.0 -1.0 7.0 4.0 -5.0 -4.0 2.0 6.0 7.0 -1.0 -8.0 8.0 6.0 3.0 -2.0
// expected r0: 8x2x3xf32 = -7.0 -5.0 -4.0 6.0 -4.0 -7.0 -2.0 3.0 -1.0 2.0 6.0 7.0 -1.0 -6.0 1.0 3.0 -3.0 0.0 -8.0 0.0 -6.0 6.0 3.0 -2.0 -2.0 1.0 -8.0 7.0 -2.0 -6.0 -6.0 4.0 -2.0 -5.0 -1.0 -6.0 -1.0 -8.0 8.0 -8.0 0.0 7.0 -1.0 -3.0 1.0 -6.0 3.0 -9.0
func.func @main(%a: tensor<8x2x3xf32>, %i: tensor<3x2x1xi32>, %u: tensor<3x2x3xf32>) -> (tensor<8x2x3xf32>) {
  %r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], input_batching_dims = [1], scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    
    stablehlo.return %y : tensor<f32>
  }) : (tensor<8x2x3xf32>, tensor<3x2x1xi32>, tensor<3x2x3xf32>) -> tensor<8x2x3xf32>
  return %r : tensor<8x2x3xf32>
}
