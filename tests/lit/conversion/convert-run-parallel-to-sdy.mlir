// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --convert-run-parallel-to-sdy %s | FileCheck %s

// Two replicas of two partitions: operands and results have an entry for each
// process.
// CHECK: module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32}
// CHECK: sdy.mesh @processes = <["process"=4]>
func.func @f(%x: tensor<3xf32>) -> tensor<3xf32> {
  return %x : tensor<3xf32>
}

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<3xf32> {
  // CHECK: %[[ALL:.*]] = stablehlo.concatenate %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, dim = 0 : {{.*}} -> tensor<4x3xf32>
  // CHECK: %[[OUT:.*]] = sdy.manual_computation(%[[ALL]]) in_shardings=[<@processes, [{"process"}, {}]>] out_shardings=[<@processes, [{"process"}, {}]>] manual_axes={"process"} (%[[X:.*]]: tensor<1x3xf32>) {
  // CHECK-NEXT: %[[OWN:.*]] = stablehlo.reshape %[[X]] : (tensor<1x3xf32>) -> tensor<3xf32>
  // CHECK-NEXT: %[[R:.*]] = func.call @f(%[[OWN]])
  // CHECK-NEXT: %[[ENTRY:.*]] = stablehlo.reshape %[[R]] : (tensor<3xf32>) -> tensor<1x3xf32>
  // CHECK-NEXT: sdy.return %[[ENTRY]]
  %0:4 = "interpreter.run_parallel"(%a, %b, %a, %b) {programs = [[@f, @f], [@f, @f]]} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  // CHECK: stablehlo.slice %[[OUT]] [2:3, 0:3]
  return %0#2 : tensor<3xf32>
}
