// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel that is longer than the rows.
// argument a: 1x3x2xf32 = -9.0 -7.0 -3.0 5.0 5.0 8.0
// argument k: 5x2x4xf32 = -4.0 7.0 -2.0 -2.0 -5.0 -8.0 5.0 -3.0 2.0 0.0 -1.0 -3.0 -7.0 4.0 7.0 4.0 -1.0 7.0 8.0 -1.0 -7.0 -5.0 2.0 7.0 -1.0 6.0 -8.0 -7.0 -1.0 -6.0 -4.0 2.0 7.0 5.0 -5.0 8.0 -9.0 -9.0 6.0 -6.0
// expected r0: 1x0x4xf32 =
// expected r1: 1x0x4xf32 =
func.func @main(%a: tensor<1x3x2xf32>, %k: tensor<5x2x4xf32>) -> (tensor<1x0x4xf32>, tensor<1x0x4xf32>) {
  %r = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x2xf32>, tensor<5x2x4xf32>) -> tensor<1x0x4xf32>
  %s = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[-4, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x2xf32>, tensor<5x2x4xf32>) -> tensor<1x0x4xf32>
  return %r, %s : tensor<1x0x4xf32>, tensor<1x0x4xf32>
}
