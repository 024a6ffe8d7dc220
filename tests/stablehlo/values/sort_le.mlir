// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A comparator that is no order: two equal elements each come before the other.
// argument x: 11xf32 = 3 nan 1 nan 2 0 nan -1 7 2 nan
// permutation r0: 11xf32 = 3 nan 1 nan 2 0 nan -1 7 2 nan
// permutation r1: 11xi32 = 0 1 2 3 4 5 6 7 8 9 10
func.func @main(%x: tensor<11xf32>) -> (tensor<11xf32>, tensor<11xi32>) {
  %io = stablehlo.iota dim = 0 : tensor<11xi32>
  %r:2 = "stablehlo.sort"(%x, %io) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %s = stablehlo.compare LE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %s : tensor<i1>
  }) : (tensor<11xf32>, tensor<11xi32>) -> (tensor<11xf32>, tensor<11xi32>)
  return %r#0, %r#1 : tensor<11xf32>, tensor<11xi32>
}
