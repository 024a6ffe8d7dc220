// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A slice that begins where the tensor ends.
// argument a: 2x4xf32 = 0 1 2 3 4 5 6 7
// expected r0: 0x4xf32 =
func.func @main(%a: tensor<2x4xf32>) -> tensor<0x4xf32> {
  %0 = stablehlo.slice %a [2:2, 0:4] : (tensor<2x4xf32>) -> tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}
