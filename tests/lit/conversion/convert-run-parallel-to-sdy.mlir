// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --convert-run-parallel-to-sdy --split-input-file --verify-diagnostics %s | FileCheck %s

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

// -----

// A function whose shardings cut something is one of whole tensors.
sdy.mesh @mesh = <["x"=2]>
func.func @whole(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func @joined
func.func @joined(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<4xf32> {
  // CHECK: %[[ALL:.*]] = stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 0 : {{.*}} -> tensor<4xf32>
  // CHECK: %[[IN:.*]] = sdy.sharding_constraint %[[ALL]] <@mesh, [{"x"}]>
  // CHECK: %[[R:.*]] = call @whole(%[[IN]])
  // CHECK: %[[OUT:.*]] = sdy.sharding_constraint %[[R]] <@mesh, [{}]>
  // CHECK: return %[[OUT]]
  %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@whole, @whole]]} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
// Where none cuts, each process has a tensor of its own, and they are added.
// CHECK-LABEL: func.func @sum
func.func @sum(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> tensor<4xf32> {
  // CHECK: "stablehlo.all_reduce"
  // CHECK-SAME{LITERAL}: replica_groups = dense<[[0, 1]]>
  %0 = sdy.all_reduce {"x"} %x out_sharding=<@mesh, [{}]> : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func @each(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@sum, @sum]]} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}

// -----

sdy.mesh @mesh = <["x"=2]>
func.func @whole(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @misfit(%a: tensor<3xf32>, %b: tensor<3xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{cannot have 'tensor<3xf32>' as a part of 'tensor<4xf32>', by the sharding of the latter}}
  %0:2 = "interpreter.run_parallel"(%a, %b) {programs = [[@whole, @whole]]} : (tensor<3xf32>, tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#1 : tensor<4xf32>
}
