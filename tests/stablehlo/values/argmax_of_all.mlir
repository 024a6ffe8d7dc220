// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The place of the largest of 24 elements, by one thread: LLVM's vectoriser walked 2^24 paths of its steps.
// argument x: 4x6xf32 = 0 1 2 3 4 5 6 7 8 9 10 30 12 13 14 30 16 17 18 19 20 21 22 23
// expected r0: i64 = 11
module {
  func.func @main(%x: tensor<4x6xf32>) -> tensor<i64> {
    %f = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
    %i = stablehlo.iota dim = 0 : tensor<24xi64>
    %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %r:2 = stablehlo.reduce(%f init: %ninf), (%i init: %zero) across dimensions = [0] : (tensor<24xf32>, tensor<24xi64>, tensor<f32>, tensor<i64>) -> (tensor<f32>, tensor<i64>)
     reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i64>, %d: tensor<i64>) {
      %g = stablehlo.compare GT, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %n = stablehlo.compare NE, %a, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %o = stablehlo.or %g, %n : tensor<i1>
      %e = stablehlo.compare EQ, %a, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %l = stablehlo.compare LT, %b, %d : (tensor<i64>, tensor<i64>) -> tensor<i1>
      %el = stablehlo.and %e, %l : tensor<i1>
      %p = stablehlo.or %o, %el : tensor<i1>
      %v = stablehlo.select %o, %a, %c : tensor<i1>, tensor<f32>
      %w = stablehlo.select %p, %b, %d : tensor<i1>, tensor<i64>
      stablehlo.return %v, %w : tensor<f32>, tensor<i64>
    }
    return %r#1 : tensor<i64>
  }
}
