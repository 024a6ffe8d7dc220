// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The unused result decides the other one: of equal places, the update of the largest number stays.
// argument a: 4xf32 = 0 0 0 0
// argument b: 4xi32 = 0 0 0 0
// argument i: 3x1xi32 = 2 2 1
// argument u: 3xf32 = 5 4 1
// argument v: 3xi32 = 7 8 9
// expected r0: 4xi32 = 0 9 7 0
func.func @main(%a: tensor<4xf32>, %b: tensor<4xi32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>, %v: tensor<3xi32>) -> tensor<4xi32> {
  %0, %1 = "stablehlo.scatter"(%a, %b, %i, %u, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %p: tensor<i32>, %y: tensor<f32>, %q: tensor<i32>):
    %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %m = stablehlo.maximum %x, %y : tensor<f32>
    %k = stablehlo.select %less, %q, %p : tensor<i1>, tensor<i32>
    stablehlo.return %m, %k : tensor<f32>, tensor<i32>
  }) : (tensor<4xf32>, tensor<4xi32>, tensor<3x1xi32>, tensor<3xf32>, tensor<3xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %1 : tensor<4xi32>
}
