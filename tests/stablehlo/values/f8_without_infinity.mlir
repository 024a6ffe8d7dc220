// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A float type without infinities: what is finite, a function beyond its range, and the largest and the least of a long row.
// expected r0: 3xi1 = 1 1 0
// expected r1: f32 = -2
// expected r2: f32 = 448
// expected r3: 3xf32 = 0 0.5 1
func.func @main() -> (tensor<3xi1>, tensor<f32>, tensor<f32>, tensor<3xf32>) {
  %x = stablehlo.constant dense<[-2.5, 448.0, 0x7F]> : tensor<3xf8E4M3FN>
  %f = stablehlo.is_finite %x : (tensor<3xf8E4M3FN>) -> tensor<3xi1>
  %i = stablehlo.iota dim = 0 : tensor<5000xi32>
  %zero = stablehlo.constant dense<0> : tensor<5000xi32>
  %z = stablehlo.multiply %i, %zero : tensor<5000xi32>
  %t = stablehlo.constant dense<-2.0> : tensor<5000xf32>
  %c = stablehlo.convert %z : (tensor<5000xi32>) -> tensor<5000xf32>
  %s = stablehlo.add %c, %t : tensor<5000xf32>
  %r = stablehlo.convert %s : (tensor<5000xf32>) -> tensor<5000xf8E4M3FN>
  %least = stablehlo.constant dense<-448.0> : tensor<f8E4M3FN>
  %most = stablehlo.constant dense<448.0> : tensor<f8E4M3FN>
  %a = stablehlo.reduce(%r init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<5000xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
  %d = stablehlo.divide %r, %r : tensor<5000xf8E4M3FN>
  %w = stablehlo.broadcast_in_dim %most, dims = [] : (tensor<f8E4M3FN>) -> tensor<5000xf8E4M3FN>
  %p = stablehlo.multiply %d, %w : tensor<5000xf8E4M3FN>
  %b = stablehlo.reduce(%p init: %most) applies stablehlo.minimum across dimensions = [0] : (tensor<5000xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<f8E4M3FN>
  %u = stablehlo.convert %a : (tensor<f8E4M3FN>) -> tensor<f32>
  %v = stablehlo.convert %b : (tensor<f8E4M3FN>) -> tensor<f32>
  %e = stablehlo.constant dense<[-448.0, 0.0, 448.0]> : tensor<3xf8E4M3FN>
  %l = stablehlo.logistic %e : tensor<3xf8E4M3FN>
  %g = stablehlo.convert %l : (tensor<3xf8E4M3FN>) -> tensor<3xf32>
  return %f, %u, %v, %g : tensor<3xi1>, tensor<f32>, tensor<f32>, tensor<3xf32>
}
