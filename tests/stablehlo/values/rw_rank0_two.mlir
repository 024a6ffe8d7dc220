// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Windows of two numbers, and what scatters back to one.
// argument x: i32 = 5
// argument y: f32 = 2
// expected r0: i32 = 8
// expected r1: f32 = 6
// expected r2: f32 = 9
func.func @main(%x: tensor<i32>, %y: tensor<f32>) -> (tensor<i32>, tensor<f32>, tensor<f32>) {
  %i = stablehlo.constant dense<3> : tensor<i32>
  %j = stablehlo.constant dense<3.0> : tensor<f32>
  %r:2 = "stablehlo.reduce_window"(%x, %y, %i, %j) <{window_dimensions = array<i64>}> ({
  ^bb0(%a: tensor<i32>, %c: tensor<f32>, %b: tensor<i32>, %d: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<i32>
    %t = stablehlo.multiply %c, %d : tensor<f32>
    stablehlo.return %s, %t : tensor<i32>, tensor<f32>
  }) : (tensor<i32>, tensor<f32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)
  %q = "stablehlo.select_and_scatter"(%y, %r#1, %j) <{window_dimensions = array<i64>, window_strides = array<i64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %g = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %g : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %r#0, %r#1, %q : tensor<i32>, tensor<f32>, tensor<f32>
}
