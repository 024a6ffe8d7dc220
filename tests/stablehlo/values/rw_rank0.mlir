// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A window of a number (iree-org/iree#9299).
// argument x: i32 = 5
// expected r0: i32 = 8
func.func @main(%x: tensor<i32>) -> (tensor<i32>) {
  %i = stablehlo.constant dense<3> : tensor<i32>
  %r = "stablehlo.reduce_window"(%x, %i) <{window_dimensions = array<i64>, window_strides = array<i64>, base_dilations = array<i64>, window_dilations = array<i64>, padding = dense<> : tensor<0x2xi64>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %s : tensor<i32>
  }) : (tensor<i32>, tensor<i32>) -> tensor<i32>
  return %r : tensor<i32>
}
