// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Windows that move in two dimensions and lie partly outside.
// argument a: 8x5xf32 = 5.0 5.0 -9.0 -7.0 3.0 -2.0 -3.0 -8.0 -6.0 6.0 5.0 5.0 1.0 -7.0 -4.0 0.0 8.0 -5.0 0.0 -1.0 0.0 0.0 3.0 -8.0 8.0 6.0 4.0 -4.0 -2.0 -1.0 -4.0 -8.0 4.0 -9.0 4.0 -6.0 2.0 -3.0 -5.0 7.0
// argument i: 3x2xi32 = 3 7 0 3 2 3
// argument u: 3x2x2xf32 = -9.0 3.0 -3.0 6.0 -6.0 -3.0 -9.0 5.0 0.0 -2.0 7.0 1.0
// expected r0: 8x5xf32 = 5.0 5.0 -9.0 -6.0 -3.0 -2.0 -3.0 -8.0 -9.0 5.0 5.0 5.0 1.0 0.0 -2.0 0.0 8.0 -5.0 7.0 1.0 0.0 0.0 3.0 -8.0 8.0 6.0 4.0 -4.0 -2.0 -1.0 -4.0 -8.0 4.0 -9.0 4.0 -6.0 2.0 -3.0 -5.0 7.0
func.func @main(%a: tensor<8x5xf32>, %i: tensor<3x2xi32>, %u: tensor<3x2x2xf32>) -> (tensor<8x5xf32>) {
  %r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], inserted_window_dims = [], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    
    stablehlo.return %y : tensor<f32>
  }) : (tensor<8x5xf32>, tensor<3x2xi32>, tensor<3x2x2xf32>) -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}
