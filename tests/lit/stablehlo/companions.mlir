// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s | mgpu-opt | FileCheck %s
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @functions
func.func @functions(%x: tensor<5x3xf32>, %p: tensor<3xi1>) {
  // CHECK: chlo.erf_inv %{{.*}} : tensor<5x3xf32> -> tensor<5x3xf32>
  %0 = chlo.erf_inv %x : tensor<5x3xf32> -> tensor<5x3xf32>
  // CHECK: chlo.next_after %{{.*}}, %{{.*}} : tensor<5x3xf32>, tensor<5x3xf32> -> tensor<5x3xf32>
  %1 = chlo.next_after %x, %x : tensor<5x3xf32>, tensor<5x3xf32> -> tensor<5x3xf32>
  // CHECK: chlo.top_k(%{{.*}}, k = 2) : tensor<5x3xf32> -> (tensor<5x2xf32>, tensor<5x2xi32>)
  %2:2 = chlo.top_k(%x, k = 2) : tensor<5x3xf32> -> (tensor<5x2xf32>, tensor<5x2xi32>)
  // CHECK: chlo.broadcast_add %{{.*}}, %{{.*}} {broadcast_dimensions = array<i64: 0>} : (tensor<5x3xf32>, tensor<5xf32>) -> tensor<5x3xf32>
  %y = stablehlo.constant dense<1.0> : tensor<5xf32>
  %3 = chlo.broadcast_add %x, %y {broadcast_dimensions = array<i64: 0>} : (tensor<5x3xf32>, tensor<5xf32>) -> tensor<5x3xf32>
  // CHECK: chlo.broadcast_compare %{{.*}}, %{{.*}} {comparison_direction = #chlo<comparison_direction LT>} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xi1>
  %4 = chlo.broadcast_compare %x, %x {comparison_direction = #chlo<comparison_direction LT>} : (tensor<5x3xf32>, tensor<5x3xf32>) -> tensor<5x3xi1>
  // CHECK: mhlo.copy %{{.*}} {mhlo.sharding = "{manual}"} : tensor<5x3xf32>
  %5 = mhlo.copy %x {mhlo.sharding = "{manual}"} : tensor<5x3xf32>
  return
}

// CHECK-LABEL: func.func @checks
func.func @checks(%x: tensor<2xf32>) {
  // CHECK: check.expect_eq_const %{{.*}}, dense<1.000000e+00> : tensor<2xf32>
  check.expect_eq_const %x, dense<1.0> : tensor<2xf32>
  // CHECK: check.expect_almost_eq_const %{{.*}}, dense<1.000000e+00> : tensor<2xf32>
  check.expect_almost_eq_const %x, dense<1.0> : tensor<2xf32>
  // CHECK: check.expect_close %{{.*}}, %{{.*}} {max_ulp_difference = 4 : i64} : tensor<2xf32>, tensor<2xf32>
  check.expect_close %x, %x {max_ulp_difference = 4 : i64} : tensor<2xf32>, tensor<2xf32>
  // CHECK: interpreter.probe %{{.*}}, probe_id = "p" : tensor<2xf32>
  %0 = interpreter.probe %x, probe_id = "p" : tensor<2xf32>
  // CHECK: check.expect_serialized_eq %{{.*}}, probe_id = "p", iter = 1 : tensor<2xf32>
  check.expect_serialized_eq %x, probe_id = "p", iter = 1 : tensor<2xf32>
  // CHECK: "interpreter.run_parallel"(%{{.*}}, %{{.*}}) <{programs = {{\[\[}}@id], [@id]]}>
  %1:2 = "interpreter.run_parallel"(%x, %x) {programs = [[@id], [@id]]} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}
func.func @id(%x: tensor<2xf32>) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}
