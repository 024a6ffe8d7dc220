// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4x8xf32>, %n: tensor<4x8xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  // CHECK: linalg.fill
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
  // CHECK: arith.addf
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  // The place of the largest: two results of one loop.
  // CHECK: linalg.generic
  // CHECK: arith.cmpf ogt
  // CHECK: arith.select
  // CHECK: linalg.yield %{{.*}}, %{{.*}} : f32, i32
  %most:2 = stablehlo.reduce(%x init: %zero), (%n init: %none) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
   reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
    %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %1 = stablehlo.select %0, %a, %b : tensor<i1>, tensor<f32>
    %2 = stablehlo.select %0, %i, %j : tensor<i1>, tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }
  // A window of 1 x 4, each second one.
  // CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]
  // CHECK: arith.maximumf
  %window = "stablehlo.reduce_window"(%x, %zero) <{window_dimensions = array<i64: 1, 4>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %0 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x3xf32>
  return %sum, %most#0, %most#1, %window : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<4x3xf32>
}
