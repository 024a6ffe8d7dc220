// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A window of two dimensions, one of which an index moves; the last one is partly outside.
// argument x: 8x5xf32 = 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
// argument i: 3x1xi32 = 0 1 7
// argument u: 3x2x5xf32 = 1 1 1 1 1 1 1 1 1 1 2 2 2 2 2 2 2 2 2 2 3 3 3 3 3 3 3 3 3 3
// expected r0: 8x5xf32 = 1 1 1 1 1 3 3 3 3 3 2 2 2 2 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 3 3 3 3 3
func.func @main(%x: tensor<8x5xf32>, %i: tensor<3x1xi32>, %u: tensor<3x2x5xf32>) -> tensor<8x5xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8x5xf32>, tensor<3x1xi32>, tensor<3x2x5xf32>) -> tensor<8x5xf32>
  return %r : tensor<8x5xf32>
}
