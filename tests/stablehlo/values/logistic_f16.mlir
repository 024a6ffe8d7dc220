// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Numbers whose power is beyond f16, and whose result is not.
// argument x: 4xf16 = -12 -14 0 12
// expected r0: 4xf16 = 6.13927841186523437e-06 8.34465026855468750e-07 0.5 1.0
func.func @main(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = stablehlo.logistic %x : tensor<4xf16>
  return %0 : tensor<4xf16>
}
