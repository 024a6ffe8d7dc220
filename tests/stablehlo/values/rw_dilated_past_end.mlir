// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A dilated window that is longer than the rows.
// argument a: 3x4xf32 = 0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0 10.0 11.0
// expected r0: 0x3xf32 =
func.func @main(%a: tensor<3x4xf32>) -> (tensor<0x3xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.reduce_window"(%a, %c) <{window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 9, 1>, padding = dense<[[0, 0], [0, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<0x3xf32>
  return %r : tensor<0x3xf32>
}
