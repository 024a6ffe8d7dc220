// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s | mgpu-opt | FileCheck %s
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @one_operand
func.func @one_operand(%f: tensor<2x?xf32>, %i: tensor<4xui8>, %c: tensor<3xcomplex<f64>>, %p: tensor<i1>) {
  // CHECK: stablehlo.abs %{{.*}} : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
  %0 = stablehlo.abs %c : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
  // CHECK: stablehlo.exponential %{{.*}} : tensor<2x?xf32>
  %1 = stablehlo.exponential %f : tensor<2x?xf32>
  // CHECK: stablehlo.tanh %{{.*}} {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-05, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x?xf32>
  %2 = "stablehlo.tanh"(%f) {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<2x?xf32>) -> tensor<2x?xf32>
  // CHECK: stablehlo.popcnt %{{.*}} : tensor<4xui8>
  %3 = stablehlo.popcnt %i : tensor<4xui8>
  // CHECK: stablehlo.not %{{.*}} : tensor<i1>
  %4 = stablehlo.not %p : tensor<i1>
  // CHECK: stablehlo.convert %{{.*}} : (tensor<4xui8>) -> tensor<4xbf16>
  %5 = stablehlo.convert %i : (tensor<4xui8>) -> tensor<4xbf16>
  // CHECK: stablehlo.is_finite %{{.*}} : (tensor<2x?xf32>) -> tensor<2x?xi1>
  %6 = stablehlo.is_finite %f : (tensor<2x?xf32>) -> tensor<2x?xi1>
  // CHECK: stablehlo.reduce_precision %{{.*}}, format = e5m10 : tensor<2x?xf32>
  %7 = "stablehlo.reduce_precision"(%f) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<2x?xf32>) -> tensor<2x?xf32>
  // CHECK: stablehlo.real %{{.*}} : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
  %8 = stablehlo.real %c : (tensor<3xcomplex<f64>>) -> tensor<3xf64>
  return
}

// CHECK-LABEL: func.func @two_operands
func.func @two_operands(%f: tensor<4xf32>, %i: tensor<4xi32>, %u: tensor<4xui32>, %q: tensor<4x!quant.uniform<i8:f32, 0.5>>) {
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<4xf32>
  %0 = "stablehlo.add"(%f, %f) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} : (tensor<4x!quant.uniform<i8:f32, 5.000000e-01>>, tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %q, %f : (tensor<4x!quant.uniform<i8:f32, 0.5>>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.subtract %{{.*}}, %{{.*}} {mhlo.sharding = "{replicated}"} : tensor<4xf32>
  %2 = stablehlo.subtract %f, %f {mhlo.sharding = "{replicated}"} : tensor<4xf32>
  // CHECK: stablehlo.shift_right_logical %{{.*}}, %{{.*}} : tensor<4xui32>
  %3 = stablehlo.shift_right_logical %u, %u : tensor<4xui32>
  // CHECK: stablehlo.complex %{{.*}}, %{{.*}} : tensor<4xcomplex<f32>>
  %4 = stablehlo.complex %f, %f : tensor<4xcomplex<f32>>
  // CHECK: stablehlo.compare EQ, %{{.*}}, %{{.*}}, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %5 = stablehlo.compare  EQ, %f, %f,  FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK: stablehlo.compare LT, %{{.*}}, %{{.*}} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  %6 = "stablehlo.compare"(%i, %i) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @three_operands
func.func @three_operands(%f: tensor<4xf32>, %s: tensor<f32>, %p: tensor<i1>) {
  // CHECK: stablehlo.clamp %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %0 = stablehlo.clamp %s, %f, %s : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // CHECK: stablehlo.clamp %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xf32>
  %1 = stablehlo.clamp %f, %f, %f : tensor<4xf32>
  // CHECK: stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<i1>, tensor<4xf32>
  %2 = stablehlo.select %p, %f, %f : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}
