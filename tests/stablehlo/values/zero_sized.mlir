// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// About tensors without elements: concatenate, reduce, dot, reshape, gather, sort, scatter.
// argument x: 0x3xf32 = 
// argument y: 3x2xf32 = 1.0 1.0 1.0 1.0 1.0 1.0
// argument z: 2x3xf32 = 0.0 1.0 2.0 3.0 4.0 5.0
// expected r0: 2x3xf32 = 0.0 1.0 2.0 3.0 4.0 5.0
// expected r1: 3xf32 = 7.0 7.0 7.0
// expected r4: 3x3xf32 = 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.0
// expected r6: 2x3xf32 = 0.0 1.0 2.0 3.0 4.0 5.0
func.func @main(%x: tensor<0x3xf32>, %y: tensor<3x2xf32>, %z: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<0xf32>, tensor<0x2xf32>, tensor<3x3xf32>, tensor<0x3xf32>, tensor<2x3xf32>, tensor<0xi32>) {
  %c = stablehlo.concatenate %x, %z, dim = 0 : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %i = stablehlo.constant dense<7.0> : tensor<f32>
  %r = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
  %q = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [1] : (tensor<0x3xf32>, tensor<f32>) -> tensor<0xf32>
  %d = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<0x3xf32>, tensor<3x2xf32>) -> tensor<0x2xf32>
  %e = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<0x3xf32>, tensor<0x3xf32>) -> tensor<3x3xf32>
  %s = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %l = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %l : tensor<i1>
  }) : (tensor<0x3xf32>) -> tensor<0x3xf32>
  %no = stablehlo.constant dense<> : tensor<0x1xi32>
  %u = "stablehlo.scatter"(%z, %no, %x) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%p: tensor<f32>, %t: tensor<f32>):
    stablehlo.return %t : tensor<f32>
  }) : (tensor<2x3xf32>, tensor<0x1xi32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  %o = stablehlo.iota dim = 0 : tensor<0xi32>
  return %c, %r, %q, %d, %e, %s, %u, %o : tensor<2x3xf32>, tensor<3xf32>, tensor<0xf32>, tensor<0x2xf32>, tensor<3x3xf32>, tensor<0x3xf32>, tensor<2x3xf32>, tensor<0xi32>
}
