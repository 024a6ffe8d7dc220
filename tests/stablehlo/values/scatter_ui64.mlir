// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An index near 2^64 is past the end, and so is what follows it in a window.
// argument a: 4xf32 = 0 0 0 0
// argument iu: 1xui64 = 18446744073709551615
// argument u: 2xf32 = 5 6
// expected r0: 4xf32 = 0 0 0 0
func.func @main(%a: tensor<4xf32>, %iu: tensor<1xui64>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %sc = "stablehlo.scatter"(%a, %iu, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>, indices_are_sorted = false, unique_indices = true}> ({^bb0(%p: tensor<f32>, %q: tensor<f32>): stablehlo.return %q : tensor<f32>}) : (tensor<4xf32>, tensor<1xui64>, tensor<2xf32>) -> tensor<4xf32>
  return %sc : tensor<4xf32>
}
