// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pads that add rows to none, and that take all away.
// argument z: 0x3xf32 =
// argument a: 2x3xf32 = -1.0 -9.0 1.0 -4.0 -2.0 -5.0
// expected r0: 2x3xf32 = -1.0 -9.0 1.0 -4.0 -2.0 -5.0
// expected r1: 2x2xf32 = 4.0 4.0 4.0 4.0
// expected r2: 0x3xf32 =
func.func @main(%z: tensor<0x3xf32>, %a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x2xf32>, tensor<0x3xf32>) {
  %c = stablehlo.constant dense<4.0> : tensor<f32>
  %r = stablehlo.concatenate %z, %a, %z, dim = 0 : (tensor<0x3xf32>, tensor<2x3xf32>, tensor<0x3xf32>) -> tensor<2x3xf32>
  %p = stablehlo.pad %z, %c, low = [1, -1], high = [1, 0], interior = [5, 0] : (tensor<0x3xf32>, tensor<f32>) -> tensor<2x2xf32>
  %q = stablehlo.pad %a, %c, low = [-1, 0], high = [-1, 0], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<0x3xf32>
  return %r, %p, %q : tensor<2x3xf32>, tensor<2x2xf32>, tensor<0x3xf32>
}
