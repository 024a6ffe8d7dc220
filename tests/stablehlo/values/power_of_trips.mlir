// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A power that says how often a loop goes round.
// argument x: 4xf32 = 1 2 3 4
// expected r0: 4xf32 = 256 512 768 1024
// expected r1: i32 = 8
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<i32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %end = stablehlo.power %two, %three : tensor<i32>
  %l:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %n = stablehlo.add %i, %one : tensor<i32>
      %s = stablehlo.add %a, %a : tensor<4xf32>
      stablehlo.return %n, %s : tensor<i32>, tensor<4xf32>
    }
  return %l#1, %l#0 : tensor<4xf32>, tensor<i32>
}
