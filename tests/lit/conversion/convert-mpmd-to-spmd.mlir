// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-mpmd-to-spmd --split-input-file | FileCheck %s

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["y"=2, "z"=2]>>>
!a = !mpmd.mesh_tensor<"m1", tensor<8x4xf32>, sharding=<@m1, [{"x"}, {}]>>
!b = !mpmd.mesh_tensor<"m2", tensor<8x4xf32>, sharding=<@m2, [{"z"}, {"y"}]>>

// Devices 0 and 1 are mesh m1, 2 to 5 mesh m2.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<8x4xf32> {spmd.layout = #spmd.layout<mesh = [2], first = 0, split = {{\[\[}}0], []]>})
// CHECK-SAME: -> (tensor<8x4xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], first = 2, split = {{\[\[}}1], [0]]>})
func.func @main(%x: !a) -> !b attributes {topology = #topology} {
  // CHECK: %[[MINE:.*]] = spmd.full_to_shard %[[X]] : tensor<8x4xf32> to tensor<4x4xf32>
  // CHECK: %[[F:.*]] = spmd.call @m1.f.0(%[[MINE]]) in [{{.*}}first = 0, split = {{\[\[}}0], []]>] out [{{.*}}] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %f = mpmd.fragment<mesh="m1", origin=["f"]> (%x) (%t: tensor<8x4xf32>) {
    %0 = stablehlo.negate %t : tensor<8x4xf32>
    mpmd.return %0 : tensor<8x4xf32>
  } : (!a) -> !a
  // CHECK: %[[INIT:.*]] = tensor.empty() : tensor<4x2xf32>
  // CHECK: %[[T:.*]] = spmd.move from <mesh = [2], first = 0, split = {{\[\[}}0], []]> to <mesh = [2, 2], first = 2, split = {{\[\[}}1], [0]]> full = [8, 4] ins(%[[F]] : tensor<4x4xf32>) outs(%[[INIT]]
  %t = mpmd.transfer %f : (!a) -> !b
  // CHECK: %[[R:.*]] = spmd.shard_to_full %[[T]]
  // CHECK: return %[[R]]
  return %t : !b
}
// The body keeps its shardings, closed, for the partitioner.
// CHECK: func.func private @m1.f.0(%{{.*}}: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}, {}]>})
// CHECK-SAME: -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}, {}]>})

// -----

#topology = #mpmd.topology<<"m1" : <["x"=4], device_ids=[3, 1, 2, 0]>>>
!device = !mpmd.mesh_tensor<"m1", tensor<8x4xf32>, sharding=<@m1, [{"x":(1)2}, {}]>>
!host = !mpmd.mesh_tensor<"m1", tensor<8x4xf32>, sharding=<@m1, [{"x":(1)2}, {}]>, memory_kind="pinned_host">

// Axis x becomes two axes, as shardings take a part of it. What is in the
// hosts' memory is there whole; it comes to the devices, and the next state
// goes where the last one was.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[S:.*]]: tensor<8x4xf32> {spmd.layout = #[[L:.*]], tf.aliasing
// CHECK-SAME: spmd.device_order = array<i64: 3, 1, 2, 0>
func.func @main(%s: !host {tf.aliasing_output = 0 : i32}) -> (!host {spmd.alias = 0 : i64})
    attributes {topology = #topology} {
  // CHECK: %[[D:.*]] = spmd.distribute <mesh = [2, 2], first = 0, split = {{\[\[}}0], []]> ins(%[[S]] : tensor<8x4xf32>)
  %d = mpmd.transfer %s : (!host) -> !device
  // CHECK: %[[F:.*]] = spmd.call @m1.f.0(%[[D]])
  %f = mpmd.fragment<mesh="m1", origin=["f"]> (%d) (%t: tensor<8x4xf32>) {
    %0 = stablehlo.negate %t : tensor<8x4xf32>
    mpmd.return %0 : tensor<8x4xf32>
  } : (!device) -> !device
  // CHECK: %[[N:.*]] = spmd.collect <mesh = [2, 2], first = 0, split = {{\[\[}}0], []]> ins(%[[F]] : tensor<4x4xf32>) outs(%[[S]] : tensor<8x4xf32>)
  %n = mpmd.transfer %f : (!device) -> !host
  // CHECK: return %[[N]]
  return %n : !host
}
