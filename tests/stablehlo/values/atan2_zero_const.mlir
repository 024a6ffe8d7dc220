// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The angle of two zeros, which MLIR folds into NaN (openxla/xla#44705).
// expected r0: f32 = 0.0
func.func @main() -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.atan2 %z, %z : tensor<f32>
  return %r : tensor<f32>
}
