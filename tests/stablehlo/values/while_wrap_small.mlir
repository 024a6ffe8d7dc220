// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter that wraps in its type: 23 trips.
// expected r0: i8 = 126
func.func @main() -> tensor<i8> {
  %i0 = stablehlo.constant dense<0> : tensor<i8>
  %n = stablehlo.constant dense<120> : tensor<i8>
  %c = stablehlo.constant dense<50> : tensor<i8>
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
