// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg | FileCheck %s

// CHECK-DAG: affine_map<(d0, d1, d2) -> (d1, 0)>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<4x1xf32>
func.func @main(%x: tensor<4x1xf32>, %y: tensor<2x3xf32>)
    -> (tensor<2x4x5xf32>, tensor<3x2xf32>, tensor<5x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<6xf32>, tensor<2x2xf32>) {
  // CHECK: linalg.generic
  // CHECK-SAME: ins(%[[X]] :
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<4x1xf32>) -> tensor<2x4x5xf32>
  // CHECK: linalg.transpose
  %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // Negative padding takes elements away, and interior padding is a stride.
  // CHECK: tensor.extract_slice {{.*}}[0, 0] [2, 2] [1, 1]
  // CHECK: linalg.fill
  // CHECK: tensor.insert_slice {{.*}}[1, 1] [2, 2] [2, 1]
  %2 = stablehlo.pad %y, %zero, low = [1, 1], high = [1, -1], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<5x3xf32>
  // CHECK: tensor.extract_slice {{.*}}[0, 0] [2, 2] [1, 2]
  %3 = stablehlo.slice %y [0:2, 0:3:2] : (tensor<2x3xf32>) -> tensor<2x2xf32>
  // CHECK: linalg.index 1
  // CHECK: arith.subi
  // CHECK: tensor.extract
  %4 = stablehlo.reverse %y, dims = [1] : tensor<2x3xf32>
  // CHECK: tensor.collapse_shape
  %5 = stablehlo.reshape %y : (tensor<2x3xf32>) -> tensor<6xf32>
  // CHECK: tensor.concat dim(0)
  %6 = stablehlo.slice %y [0:1, 0:2] : (tensor<2x3xf32>) -> tensor<1x2xf32>
  %7 = stablehlo.concatenate %6, %6, dim = 0 : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
  return %0, %1, %2, %3, %4, %5, %7 : tensor<2x4x5xf32>, tensor<3x2xf32>, tensor<5x3xf32>, tensor<2x2xf32>, tensor<2x3xf32>, tensor<6xf32>, tensor<2x2xf32>
}
