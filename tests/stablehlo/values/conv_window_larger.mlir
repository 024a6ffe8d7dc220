// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// No kernel fits.
// argument x: 1x3x1xf32 = 1 2 3
// argument k: 5x1x1xf32 = 1 2 3 4 5
// expected r0: 1x0x1xf32 =
func.func @main(%x: tensor<1x3x1xf32>, %k: tensor<5x1x1xf32>) -> tensor<1x0x1xf32> {
  %r = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x1xf32>, tensor<5x1x1xf32>) -> tensor<1x0x1xf32>
  return %r : tensor<1x0x1xf32>
}
