// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A number of 4 bits that a loop carries wraps: 1 + 10 * 3.
// expected r0: i4 = -1
func.func @main() -> tensor<i4> {
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<10> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %a0 = stablehlo.constant dense<1> : tensor<i4>
  %a1 = stablehlo.constant dense<3> : tensor<i4>
  %l:2 = stablehlo.while(%i = %i0, %a = %a0) : tensor<i32>, tensor<i4>
  cond {
    %t = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %b = stablehlo.add %a, %a1 : tensor<i4>
    stablehlo.return %j, %b : tensor<i32>, tensor<i4>
  }
  return %l#1 : tensor<i4>
}
