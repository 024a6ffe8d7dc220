// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LT says nothing of NaN, which comes last; no element is lost.
// argument x: 7xf32 = 3 nan 1 nan 2 0 nan
// expected r0: 7xf32 = 0 1 2 3 nan nan nan
// expected r1: 7xi32 = 5 2 4 0 1 3 6
func.func @main(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xi32>) {
  %io = stablehlo.iota dim = 0 : tensor<7xi32>
  %r:2 = "stablehlo.sort"(%x, %io) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %s = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  }) : (tensor<7xf32>, tensor<7xi32>) -> (tensor<7xf32>, tensor<7xi32>)
  return %r#0, %r#1 : tensor<7xf32>, tensor<7xi32>
}
