// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter that wraps after one trip, and again.
// expected r0: i32 = 2010065408
func.func @main() -> tensor<i32> {
  %i0 = stablehlo.constant dense<1000000000> : tensor<i32>
  %n = stablehlo.constant dense<2000000000> : tensor<i32>
  %c = stablehlo.constant dense<1200000000> : tensor<i32>
  %l = stablehlo.while(%i = %i0) : tensor<i32>
  cond {
    %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %j = stablehlo.add %i, %c : tensor<i32>
    stablehlo.return %j : tensor<i32>
  }
  return %l : tensor<i32>
}
