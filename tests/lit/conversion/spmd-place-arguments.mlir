// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-place-arguments --split-input-file | FileCheck %s

#rows = #spmd.layout<mesh = [2], split = [[0], []]>

// CHECK: mgpu.device_config @config #mgpu.device_config<numDevices = 2>
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4x3xf32>, %[[W:.*]]: tensor<2x3xf32> {mgpu.role = "resident"})
// CHECK-SAME: -> (tensor<4x3xf32>, tensor<2x3xf32>) {
func.func @main(%x: tensor<4x3xf32> {spmd.layout = #rows}, %w: tensor<2x3xf32>)
    -> (tensor<4x3xf32> {spmd.layout = #rows}, tensor<2x3xf32> {spmd.alias = 1}) {
  // CHECK-DAG: %[[XS:.*]] = spmd.distribute <mesh = [2], split = {{\[\[}}0], []]> ins(%[[X]] : tensor<4x3xf32>) outs(%{{.*}} : tensor<2x3xf32>)
  // CHECK-DAG: %[[WS:.*]] = spmd.distribute <mesh = [2], split = {{\[\[}}], []]> ins(%[[W]] : tensor<2x3xf32>) outs(%{{.*}} : tensor<2x3xf32>)
  %xs = spmd.full_to_shard %x : tensor<4x3xf32> to tensor<2x3xf32>
  // CHECK: %[[Y:.*]] = arith.addf %[[XS]], %[[WS]]
  %y = arith.addf %xs, %w : tensor<2x3xf32>
  // CHECK: %[[RESULT:.*]] = spmd.collect {{.*}} ins(%[[Y]] : tensor<2x3xf32>) outs(%{{.*}} : tensor<4x3xf32>)
  %r = spmd.shard_to_full %y : tensor<2x3xf32> to tensor<4x3xf32>
  // The next state of %w is stored in its shard, and collected into %w.
  // CHECK: %[[STATE:.*]] = bufferization.materialize_in_destination %[[Y]] in %[[WS]]
  // CHECK: %[[NEXT:.*]] = spmd.collect {{.*}} ins(%[[STATE]] : tensor<2x3xf32>) outs(%[[W]] : tensor<2x3xf32>)
  // CHECK: return %[[RESULT]], %[[NEXT]]
  return %r, %y : tensor<4x3xf32>, tensor<2x3xf32>
}

// -----

// Without layouts there is one device, which has everything.
// CHECK: numDevices = 1>
// CHECK: spmd.distribute <mesh = [1], split = {{\[\[}}]]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = math.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Parts of sizes of their own: a device asks for its number.
#parts = #spmd.layout<mesh = [2], split = [[0]], offsets = [[0, 3, 8]]>
// CHECK: func.func @main(%[[X:.*]]: tensor<8xf32>)
// CHECK: %[[DEVICE:.*]] = spmd.device_index
// CHECK: %[[IS:.*]] = arith.cmpi uge, %[[DEVICE]]
// CHECK: %[[SIZE:.*]] = arith.select %[[IS]], %c5{{.*}}, %c3
// CHECK: %[[OWN:.*]] = tensor.empty(%[[SIZE]]) : tensor<?xf32>
// CHECK: spmd.distribute <mesh = [2], split = {{\[\[}}0]], offsets = {{\[\[}}0, 3, 8]]> ins(%[[X]] : tensor<8xf32>) outs(%[[OWN]] : tensor<?xf32>)
func.func @main(%x: tensor<8xf32> {spmd.layout = #parts}) -> (tensor<8xf32> {spmd.layout = #parts}) {
  %xs = spmd.full_to_shard %x : tensor<8xf32> to tensor<?xf32>
  %y = math.exp %xs : tensor<?xf32>
  %r = spmd.shard_to_full %y : tensor<?xf32> to tensor<8xf32>
  return %r : tensor<8xf32>
}
