// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// By the first key, which has NaN, downwards, then by the second.
// argument x: 6xf32 = 1 nan 2 1 nan 2
// argument k: 6xi32 = 5 4 3 2 1 0
// expected r0: 6xf32 = 2 2 1 1 nan nan
// expected r1: 6xi32 = 0 3 2 5 4 1
func.func @main(%x: tensor<6xf32>, %k: tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>) {
  %r:2 = "stablehlo.sort"(%x, %k) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %g = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %e = stablehlo.compare EQ, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %l = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %t = stablehlo.and %e, %l : tensor<i1>
    %s = stablehlo.or %g, %t : tensor<i1>
    stablehlo.return %s : tensor<i1>
  }) : (tensor<6xf32>, tensor<6xi32>) -> (tensor<6xf32>, tensor<6xi32>)
  return %r#0, %r#1 : tensor<6xf32>, tensor<6xi32>
}
