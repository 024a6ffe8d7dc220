// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Powers of single numbers, whose squares one after the other took LLVM's vectorizer an age.
// argument a: i64 = 3
// argument b: i64 = 5
// expected r0: i64 = 243
// expected r1: 5xi32 = 1 0 -1 -2147483648 0
func.func @main(%a: tensor<i64>, %b: tensor<i64>) -> (tensor<i64>, tensor<5xi32>) {
  %0 = stablehlo.power %a, %b : tensor<i64>
  %x = stablehlo.constant dense<[7, 7, -1, 2, 2]> : tensor<5xi32>
  %y = stablehlo.constant dense<[0, -1, -3, 31, 32]> : tensor<5xi32>
  %1 = stablehlo.power %x, %y : tensor<5xi32>
  return %0, %1 : tensor<i64>, tensor<5xi32>
}
