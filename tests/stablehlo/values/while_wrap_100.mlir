// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter that wraps: 0, 100, -56, 44, -112, ..., 120.
// expected r0: i8 = 120
func.func @main() -> tensor<i8> {
  %i0 = stablehlo.constant dense<0> : tensor<i8>
  %n = stablehlo.constant dense<101> : tensor<i8>
  %c = stablehlo.constant dense<100> : tensor<i8>
  %l = stablehlo.while(%i = %i0) : tensor<i8>
  cond {
    %t = stablehlo.compare LT, %i, %n : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %j = stablehlo.add %i, %c : tensor<i8>
    stablehlo.return %j : tensor<i8>
  }
  return %l : tensor<i8>
}
