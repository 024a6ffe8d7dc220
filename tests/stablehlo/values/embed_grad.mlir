// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The gradient of an embedding of [batch, position], as JAX writes it; 9 is out of range.
// argument ids: 2x3x1xi32 = 0 1 1 3 0 9
// argument g: 2x3x5xf32 = 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
// expected r0: 4x5xf32 = 2 2 2 2 2 2 2 2 2 2 0 0 0 0 0 1 1 1 1 1
func.func @main(%ids: tensor<2x3x1xi32>, %g: tensor<2x3x5xf32>) -> tensor<4x5xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<4x5xf32>
  %r = "stablehlo.scatter"(%z, %ids, %g) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x5xf32>, tensor<2x3x1xi32>, tensor<2x3x5xf32>) -> tensor<4x5xf32>
  return %r : tensor<4x5xf32>
}
