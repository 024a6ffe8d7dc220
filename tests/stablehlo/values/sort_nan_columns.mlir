// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Columns with NaN, sorted by a plain comparison.
// argument a: 4x3xf64 = 3.0 nan 1.0 nan 2.0 nan 0.0 nan -1.0 5.0 5.0 nan
// permutation r0: 4x3xf64 = 3.0 nan 1.0 nan 2.0 nan 0.0 nan -1.0 5.0 5.0 nan
// permutation r1: 4x3xi32 = 0 0 0 1 1 1 2 2 2 3 3 3
func.func @main(%a: tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<4x3xi32>) {
  %i = stablehlo.iota dim = 0 : tensor<4x3xi32>
  %r:2 = "stablehlo.sort"(%a, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f64>, %y: tensor<f64>, %u: tensor<i32>, %v: tensor<i32>):
    %p = stablehlo.compare LT, %x, %y, FLOAT : (tensor<f64>, tensor<f64>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4x3xf64>, tensor<4x3xi32>) -> (tensor<4x3xf64>, tensor<4x3xi32>)
  return %r#0, %r#1 : tensor<4x3xf64>, tensor<4x3xi32>
}
