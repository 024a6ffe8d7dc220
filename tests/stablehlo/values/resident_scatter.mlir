// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An argument that stays on the devices, but that no result follows, is the same in each replay.
// options: --role x=resident --repeat 3
// doubles
// argument x: 4xf32 = 1 2 3 4
// argument i: 2x1xi32 = 1 1
// argument u: 2xf32 = 10 20
// expected r0: 4xf32 = 1 32 3 4
func.func @main(%x: tensor<4xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> tensor<4xf32> {
  %r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %s = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
