// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter of 4 bits that wraps: 0, 5, -6, -1, 4, -7, -2, 3, -8, -3, 2, 7.
// expected r0: i4 = 7
func.func @main() -> tensor<i4> {
  %i0 = stablehlo.constant dense<0> : tensor<i4>
  %n = stablehlo.constant dense<6> : tensor<i4>
  %c = stablehlo.constant dense<5> : tensor<i4>
  %l = stablehlo.while(%i = %i0) : tensor<i4>
  cond {
    %t = stablehlo.compare LT, %i, %n : (tensor<i4>, tensor<i4>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %j = stablehlo.add %i, %c : tensor<i4>
    stablehlo.return %j : tensor<i4>
  }
  return %l : tensor<i4>
}
