// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Zeros that folding alone finds (openxla/xla#44705).
// argument x: 5xi32 = -2 -1 0 1 2
// expected r0: 5xf32 = 0 0 0 0 0
// expected r1: 5xi1 = 0 0 1 0 0
func.func @main(%x: tensor<5xi32>) -> (tensor<5xf32>, tensor<5xi1>) {
  %z = stablehlo.constant dense<0> : tensor<5xi32>
  %a = stablehlo.compare NE, %x, %z, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %b = stablehlo.compare NE, %x, %z, SIGNED : (tensor<5xi32>, tensor<5xi32>) -> tensor<5xi1>
  %c = stablehlo.xor %a, %b : tensor<5xi1>
  %f = stablehlo.convert %c : (tensor<5xi1>) -> tensor<5xf32>
  %r = stablehlo.atan2 %f, %f : tensor<5xf32>
  %n = stablehlo.not %a : tensor<5xi1>
  return %r, %n : tensor<5xf32>, tensor<5xi1>
}
