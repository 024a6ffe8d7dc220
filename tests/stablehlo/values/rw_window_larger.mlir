// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// No window fits (openxla/stablehlo#1662).
// argument x: 3x4xi32 = -1 0 4 8 -9 -7 5 8 -5 -4 6 -2
// expected r0: 0x4xi32 =
func.func @main(%x: tensor<3x4xi32>) -> (tensor<0x4xi32>) {
  %i = stablehlo.constant dense<0> : tensor<i32>
  %r = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64: 5, 1>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<3x4xi32>, tensor<i32>) -> tensor<0x4xi32>
  return %r : tensor<0x4xi32>
}
