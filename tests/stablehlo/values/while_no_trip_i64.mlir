// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter that begins past its end, further than 2^63.
// expected r0: i64 = 9223372036854775807
func.func @main() -> tensor<i64> {
  %i0 = stablehlo.constant dense<9223372036854775807> : tensor<i64>
  %n = stablehlo.constant dense<-2> : tensor<i64>
  %c = stablehlo.constant dense<2> : tensor<i64>
  %l = stablehlo.while(%i = %i0) : tensor<i64>
  cond {
    %t = stablehlo.compare LT, %i, %n : (tensor<i64>, tensor<i64>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %j = stablehlo.add %i, %c : tensor<i64>
    stablehlo.return %j : tensor<i64>
  }
  return %l : tensor<i64>
}
