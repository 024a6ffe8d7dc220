// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A counter of 8 bits without a sign that wraps before it comes to its end.
// expected r0: i64 = 252
// expected r1: i32 = -519152528
func.func @main() -> (tensor<i64>, tensor<i32>) {
  %s = stablehlo.constant dense<0> : tensor<ui8>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %l = stablehlo.constant dense<250> : tensor<ui8>
  %d = stablehlo.constant dense<100> : tensor<ui8>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %s, %c = %one) : tensor<ui8>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %l, UNSIGNED : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %n = stablehlo.add %i, %d : tensor<ui8>
    %m = stablehlo.multiply %c, %three : tensor<i32>
    %q = stablehlo.add %m, %one : tensor<i32>
    stablehlo.return %n, %q : tensor<ui8>, tensor<i32>
  }
  %x = stablehlo.convert %r#0 : (tensor<ui8>) -> tensor<i64>
  return %x, %r#1 : tensor<i64>, tensor<i32>
}
