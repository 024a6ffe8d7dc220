// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Indices of two dimensions.
// argument x: 8xf32 = 0 0 0 0 0 0 0 0
// argument i: 3x2x1xi32 = 0 1 1 7 8 -1
// argument u: 3x2xf32 = 1 2 3 4 5 6
// expected r0: 8xf32 = 1 5 0 0 0 0 0 4
func.func @main(%x: tensor<8xf32>, %i: tensor<3x2x1xi32>, %u: tensor<3x2xf32>) -> tensor<8xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>, tensor<3x2x1xi32>, tensor<3x2xf32>) -> tensor<8xf32>
  return %r : tensor<8xf32>
}
