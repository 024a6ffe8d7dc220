// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --stablehlo-expand --split-input-file --verify-diagnostics | FileCheck %s

// The sharding of an operation is that of what stands for its first result.
// CHECK-LABEL: func.func @normalise
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x2xf32>, %[[S:[a-z0-9]+]]: tensor<2xf32>, %[[O:[a-z0-9]+]]: tensor<2xf32>, %[[M:[a-z0-9]+]]: tensor<2xf32>, %[[V:[a-z0-9]+]]: tensor<2xf32>
func.func @normalise(%x: tensor<4x2xf32>, %s: tensor<2xf32>, %o: tensor<2xf32>, %m: tensor<2xf32>, %v: tensor<2xf32>) -> tensor<4x2xf32> {
  // CHECK-DAG: %[[MEAN:.*]] = stablehlo.broadcast_in_dim %[[M]], dims = [1]
  // CHECK-DAG: %[[CENTERED:.*]] = stablehlo.subtract %[[X]], %[[MEAN]]
  // CHECK-DAG: %[[VARIANCE:.*]] = stablehlo.broadcast_in_dim %[[V]], dims = [1]
  // CHECK-DAG: %[[EPSILON:.*]] = stablehlo.constant dense<5.000000e-01> : tensor<4x2xf32>
  // CHECK: %[[SUM:.*]] = stablehlo.add %[[VARIANCE]], %[[EPSILON]]
  // CHECK: %[[DEVIATION:.*]] = stablehlo.sqrt %[[SUM]]
  // CHECK: %[[NORMAL:.*]] = stablehlo.divide %[[CENTERED]], %[[DEVIATION]]
  // CHECK: %[[SCALED:.*]] = stablehlo.multiply {{.*}}, %[[NORMAL]]
  // CHECK: stablehlo.add %[[SCALED]], {{.*}} {my.note}
  %r = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {epsilon = 0.5 : f32, feature_index = 1 : i64, my.note} : (tensor<4x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%x: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3x1xf32>, tensor<i32>, tensor<5xf32>, tensor<2xf32>) {
  %two_three = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  %unknown = stablehlo.constant dense<[3, 1]> : tensor<2xi64>
  %one = stablehlo.constant dense<1> : tensor<1xi64>
  %three = stablehlo.constant dense<3> : tensor<1xi64>
  %zero = stablehlo.constant dense<0> : tensor<1xi64>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %two_three, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  // CHECK: stablehlo.reshape %arg0 : (tensor<3xf32>) -> tensor<3x1xf32>
  %1 = stablehlo.dynamic_reshape %x, %unknown : (tensor<3xf32>, tensor<2xi64>) -> tensor<3x1xf32>
  // CHECK: stablehlo.constant dense<3> : tensor<i32>
  %2 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<3xf32>) -> tensor<i32>
  // CHECK: stablehlo.pad %arg0, {{.*}}, low = [1], high = [1], interior = [0]
  %3 = stablehlo.dynamic_pad %x, %z, %one, %one, %zero : (tensor<3xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<5xf32>
  // CHECK: stablehlo.slice %arg0 [1:3]
  %4 = stablehlo.real_dynamic_slice %x, %one, %three, %one : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2xf32>
  return %0, %1, %2, %3, %4 : tensor<2x3xf32>, tensor<3x1xf32>, tensor<i32>, tensor<5xf32>, tensor<2xf32>
}

// A shape that is not known stays, to be refused by name where it is lowered.
// CHECK-LABEL: func.func @stays
func.func @stays(%x: tensor<3xf32>, %n: tensor<1xi64>) -> tensor<?xf32> {
  // CHECK: stablehlo.real_dynamic_slice
  %0 = stablehlo.real_dynamic_slice %x, %n, %n, %n : (tensor<3xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// CHECK-LABEL: func.func @broadcasting
func.func @broadcasting(%x: tensor<2x1xf32>, %y: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi1>) {
  // CHECK: %[[A:.*]] = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<2x1xf32>) -> tensor<2x3xf32>
  // CHECK: %[[B:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: stablehlo.add %[[A]], %[[B]]
  %0 = chlo.broadcast_add %x, %y : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  // CHECK: stablehlo.compare LT,
  %1 = chlo.broadcast_compare %x, %y {comparison_direction = #chlo<comparison_direction LT>} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  return %0, %1 : tensor<2x3xf32>, tensor<2x3xi1>
}

// CHECK-LABEL: func.func @tuples
func.func @tuples(%x: tensor<3xf32>, %y: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NOT: tuple
  // CHECK: return %arg1
  %0 = stablehlo.tuple %x, %y : tuple<tensor<3xf32>, tensor<2xf32>>
  %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<3xf32>, tensor<2xf32>>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<3xf32>) -> tensor<2x3xf32> {
  %s = stablehlo.constant dense<[3, 3]> : tensor<2xi64>
  // expected-error @below {{has a result of type 'tensor<2x3xf32>', which is not the shape of its operand}}
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<3xf32>, tensor<2xi64>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @main(%x: tensor<4x3xf32>, %i: tensor<2xi32>) -> tensor<3x3xf32> {
  // expected-error @below {{cannot select of 'tensor<4x3xf32>' by 'tensor<2xi32>' along dimension 0 with 0 batch dimensions}}
  %0 = stablehlo.torch_index_select %x, %i, dim = 0, batch_dims = 0 : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// -----

func.func @main(%x: tensor<4x2xf32>, %s: tensor<4xf32>) -> tensor<4x2xf32> {
  // expected-error @below {{has 'tensor<4xf32>' for the features of 'tensor<4x2xf32>'}}
  %r = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) {epsilon = 0.5 : f32, feature_index = 1 : i64} : (tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}
