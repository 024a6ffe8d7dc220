// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A number of 8 bits that grows by factors and wraps.
// expected r0: i64 = 121
// expected r1: i32 = 7174453
func.func @main() -> (tensor<i64>, tensor<i32>) {
  %s = stablehlo.constant dense<1> : tensor<i8>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %l = stablehlo.constant dense<100> : tensor<i8>
  %d = stablehlo.constant dense<3> : tensor<i8>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %s, %c = %one) : tensor<i8>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %l, SIGNED : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %n = stablehlo.multiply %i, %d : tensor<i8>
    %m = stablehlo.multiply %c, %three : tensor<i32>
    %q = stablehlo.add %m, %one : tensor<i32>
    stablehlo.return %n, %q : tensor<i8>, tensor<i32>
  }
  %x = stablehlo.convert %r#0 : (tensor<i8>) -> tensor<i64>
  return %x, %r#1 : tensor<i64>, tensor<i32>
}
