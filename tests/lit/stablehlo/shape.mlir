// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s | mgpu-opt | FileCheck %s
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @made
func.func @made(%size: tensor<2xi64>) {
  // CHECK: stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
  %0 = "stablehlo.constant"() {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32>
  // CHECK: stablehlo.constant {mhlo.sharding = "{manual}"} dense<[1, 2]> : tensor<2xui32>
  %1 = stablehlo.constant {mhlo.sharding = "{manual}"} dense<[1, 2]> : tensor<2xui32>
  // CHECK: stablehlo.constant() <{value = dense<3> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01>>
  %2 = stablehlo.constant() <{value = dense<3> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<i8:f32, 0.5>>
  // CHECK: stablehlo.constant dense_resource<__elided__> : tensor<512x512xf32>
  %3 = stablehlo.constant dense_resource<__elided__> : tensor<512x512xf32>
  // CHECK: stablehlo.iota dim = 1 : tensor<2x3xi32>
  %4 = stablehlo.iota dim = 1 : tensor<2x3xi32>
  // CHECK: stablehlo.dynamic_iota %{{.*}}, dim = 0 : (tensor<2xi64>) -> tensor<?x?xi32>
  %5 = stablehlo.dynamic_iota %size, dim = 0 : (tensor<2xi64>) -> tensor<?x?xi32>
  return
}

// CHECK-LABEL: func.func @moved
func.func @moved(%x: tensor<2x3xf32>, %s: tensor<f32>) {
  // CHECK: stablehlo.broadcast_in_dim %{{.*}}, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
  // CHECK: stablehlo.broadcast_in_dim %{{.*}}, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %1 = "stablehlo.broadcast_in_dim"(%s) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<4xf32>
  // CHECK: stablehlo.reshape %{{.*}} : (tensor<2x3xf32>) -> tensor<6xf32>
  %2 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>
  // CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %3 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  // CHECK: stablehlo.reverse %{{.*}}, dims = [0, 1] : tensor<2x3xf32>
  %4 = stablehlo.reverse %x, dims = [0, 1] : tensor<2x3xf32>
  // CHECK: stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %5 = stablehlo.concatenate %x, %x, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  // CHECK: stablehlo.pad %{{.*}}, %{{.*}}, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x4xf32>
  %6 = stablehlo.pad %x, %s, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x4xf32>
  // CHECK: stablehlo.bitcast_convert %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3x4xui8>
  %7 = stablehlo.bitcast_convert %x : (tensor<2x3xf32>) -> tensor<2x3x4xui8>
  return
}

// CHECK-LABEL: func.func @cut
func.func @cut(%x: tensor<3x8xf32>, %i: tensor<i32>, %u: tensor<1x2xf32>, %at: tensor<4x1xi64>, %s: tensor<f32>) {
  // CHECK: stablehlo.slice %{{.*}} [0:2, 1:8:2] : (tensor<3x8xf32>) -> tensor<2x4xf32>
  %0 = stablehlo.slice %x [0:2, 1:8:2] : (tensor<3x8xf32>) -> tensor<2x4xf32>
  // CHECK: stablehlo.dynamic_slice %{{.*}}, %{{.*}}, %{{.*}}, sizes = [1, 2] : (tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  %1 = stablehlo.dynamic_slice %x, %i, %i, sizes = [1, 2] : (tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
  // CHECK: stablehlo.dynamic_slice %{{.*}}, sizes = [] : (tensor<f32>) -> tensor<f32>
  %2 = stablehlo.dynamic_slice %s, sizes = [] : (tensor<f32>) -> tensor<f32>
  // CHECK: stablehlo.dynamic_update_slice %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<3x8xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
  %3 = stablehlo.dynamic_update_slice %x, %u, %i, %i : (tensor<3x8xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
  // CHECK: "stablehlo.gather"(%{{.*}}, %{{.*}}) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<3x8xf32>, tensor<4x1xi64>) -> tensor<4x8xf32>
  %4 = "stablehlo.gather"(%x, %at) {dimension_numbers = #stablehlo.gather<index_vector_dim = 1, offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 8>} : (tensor<3x8xf32>, tensor<4x1xi64>) -> tensor<4x8xf32>
  // CHECK: stablehlo.get_dimension_size %{{.*}}, dim = 1 : (tensor<3x8xf32>) -> tensor<i32>
  %5 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<3x8xf32>) -> tensor<i32>
  return
}
