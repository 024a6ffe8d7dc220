// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<3x4x8xbf16>, %d: tensor<3x8x2xbf16>,
                %e: tensor<1x8x8x4xf32>, %k: tensor<3x3x2x6xf32>)
    -> (tensor<4x2xf32>, tensor<3x4x2xbf16>, tensor<4x4xf32>, tensor<1x6x6x6xf32>) {
  // Products are sums here; --spmd-name-products makes matrix products of them.
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]
  // CHECK: arith.mulf {{.*}} fastmath<contract>
  // CHECK: arith.addf {{.*}} fastmath<contract>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  // Narrow floats are added up in f32.
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "parallel", "reduction"]
  // CHECK: -> tensor<3x4x2xf32>
  // CHECK: arith.truncf
  %1 = stablehlo.dot_general %c, %d, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x4x8xbf16>, tensor<3x8x2xbf16>) -> tensor<3x4x2xbf16>
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]
  %2 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  // Two groups of features: a dimension of their own.
  // CHECK: tensor.expand_shape {{.*}}tensor<1x8x8x2x2xf32>
  // CHECK: tensor.expand_shape {{.*}}tensor<3x3x2x2x3xf32>
  // CHECK: linalg.generic {{.*}}["parallel", "parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
  %3 = stablehlo.convolution(%e, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x2x6xf32>) -> tensor<1x6x6x6xf32>
  return %0, %1, %2, %3 : tensor<4x2xf32>, tensor<3x4x2xbf16>, tensor<4x4xf32>, tensor<1x6x6x6xf32>
}
