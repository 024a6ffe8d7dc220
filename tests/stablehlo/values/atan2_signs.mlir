// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Zeros of all signs, and one zero, in each float type.
// expected r0: 7xf64 = 0.0 3.141592653589793 -0.0 -3.141592653589793 0.0 1.5707963267948966 -3.141592653589793
// expected r1: 7xf64 = 0.0 3.1415927410125732 -0.0 -3.1415927410125732 0.0 1.5707963705062866 -3.1415927410125732
// expected r2: 7xf64 = 0.0 3.140625 -0.0 -3.140625 0.0 1.5703125 -3.140625
func.func @main() -> (tensor<7xf64>, tensor<7xf64>, tensor<7xf64>) {
  %yf64 = stablehlo.constant dense<[0.0, 0.0, -0.0, -0.0, 0.0, 1.0, -0.0]> : tensor<7xf64>
  %xf64 = stablehlo.constant dense<[0.0, -0.0, 0.0, -0.0, 1.0, 0.0, -1.0]> : tensor<7xf64>
  %rf64 = stablehlo.atan2 %yf64, %xf64 : tensor<7xf64>
  %df64 = stablehlo.convert %rf64 : (tensor<7xf64>) -> tensor<7xf64>
  %yf32 = stablehlo.constant dense<[0.0, 0.0, -0.0, -0.0, 0.0, 1.0, -0.0]> : tensor<7xf32>
  %xf32 = stablehlo.constant dense<[0.0, -0.0, 0.0, -0.0, 1.0, 0.0, -1.0]> : tensor<7xf32>
  %rf32 = stablehlo.atan2 %yf32, %xf32 : tensor<7xf32>
  %df32 = stablehlo.convert %rf32 : (tensor<7xf32>) -> tensor<7xf64>
  %yf16 = stablehlo.constant dense<[0.0, 0.0, -0.0, -0.0, 0.0, 1.0, -0.0]> : tensor<7xf16>
  %xf16 = stablehlo.constant dense<[0.0, -0.0, 0.0, -0.0, 1.0, 0.0, -1.0]> : tensor<7xf16>
  %rf16 = stablehlo.atan2 %yf16, %xf16 : tensor<7xf16>
  %df16 = stablehlo.convert %rf16 : (tensor<7xf16>) -> tensor<7xf64>
  return %df64, %df32, %df16 : tensor<7xf64>, tensor<7xf64>, tensor<7xf64>
}
