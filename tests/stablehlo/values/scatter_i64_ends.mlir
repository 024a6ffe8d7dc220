// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Indices at both ends of their type, with a window.
// argument a: 4xf32 = 4.0 -2.0 -8.0 5.0
// argument i: 4x1xi64 = -9223372036854775808 9223372036854775807 9223372036854775806 2
// argument u: 4x3xf32 = 6.0 -9.0 -8.0 -8.0 8.0 7.0 6.0 3.0 -8.0 -5.0 0.0 -1.0
// expected r0: 4xf32 = 4.0 -2.0 -13.0 5.0
func.func @main(%a: tensor<4xf32>, %i: tensor<4x1xi64>, %u: tensor<4x3xf32>) -> (tensor<4xf32>) {
  %r = "stablehlo.scatter"(%a, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4xf32>, tensor<4x1xi64>, tensor<4x3xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
