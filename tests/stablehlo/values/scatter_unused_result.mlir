// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A result of two that nobody uses.
// argument a: 8xf32 = 0 1 2 3 4 5 6 7
// argument b: 8xi32 = 0 1 2 3 4 5 6 7
// argument i: 2x1xi32 = 1 1
// argument u: 2xf32 = 1 2
// argument v: 2xi32 = 7 9
// expected r0: 8xi32 = 0 9 2 3 4 5 6 7
func.func @main(%a: tensor<8xf32>, %b: tensor<8xi32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>, %v: tensor<2xi32>) -> tensor<8xi32> {
  %0, %1 = "stablehlo.scatter"(%a, %b, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({^bb0(%x: tensor<f32>, %p: tensor<i32>, %y: tensor<f32>, %q: tensor<i32>): %z = stablehlo.add %x, %y : tensor<f32>  stablehlo.return %z, %q : tensor<f32>, tensor<i32>}) : (tensor<8xf32>, tensor<8xi32>, tensor<2x1xi32>, tensor<2xf32>, tensor<2xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  return %1 : tensor<8xi32>
}
