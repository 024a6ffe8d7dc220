// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Slices without elements, turned and reshaped.
// argument a: 2x3xf32 = -1.0 -9.0 1.0 -4.0 -2.0 -5.0
// argument i: 4x1xi32 = 0 0 0 0
// expected r0: 7x0xf32 =
func.func @main(%a: tensor<2x3xf32>, %i: tensor<4x1xi32>) -> (tensor<7x0xf32>) {
  %r = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 0>, indices_are_sorted = false}> : (tensor<2x3xf32>, tensor<4x1xi32>) -> tensor<4x0xf32>
  %t = stablehlo.transpose %r, dims = [1, 0] : (tensor<4x0xf32>) -> tensor<0x4xf32>
  %s = stablehlo.reshape %t : (tensor<0x4xf32>) -> tensor<7x0xf32>
  %v = stablehlo.reverse %s, dims = [0] : tensor<7x0xf32>
  return %v : tensor<7x0xf32>
}
