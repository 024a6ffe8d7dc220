// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: split-file %s %t
// RUN: mgpu-opt --convert-sdy-to-spmd %t/shardy.mlir | FileCheck %t/shardy.mlir
// RUN: mgpu-opt --convert-sdy-to-spmd %t/between.mlir | FileCheck %t/between.mlir
// RUN: mgpu-opt --convert-sdy-to-spmd %t/gspmd.mlir | FileCheck %t/gspmd.mlir
// RUN: mgpu-opt --convert-sdy-to-spmd %t/collectives.mlir | FileCheck %t/collectives.mlir
// RUN: mgpu-opt --convert-sdy-to-spmd %t/grid.mlir | FileCheck %t/grid.mlir
// RUN: mgpu-opt --convert-sdy-to-spmd %t/annotated.mlir | FileCheck %t/annotated.mlir
// RUN: mgpu-opt --convert-sdy-to-spmd %t/unreduced.mlir | FileCheck %t/unreduced.mlir
// RUN: mgpu-opt --convert-sdy-to-spmd %t/priorities.mlir | FileCheck %t/priorities.mlir

//--- shardy.mlir
// What enters and leaves at arguments and results gets a layout.
sdy.mesh @mesh = <["x"=2, "y"=2]>
// CHECK: mgpu.device_config @config {{.*}}numDevices = 4
// CHECK: func.func @main(%[[A:.*]]: tensor<8x4xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}0], [1]]>})
// CHECK-SAME: -> (tensor<8x4xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}0], []]>})
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}) -> tensor<8x4xf32> {
  // CHECK-NEXT: %[[OWN:.*]] = spmd.full_to_shard %[[A]] : tensor<8x4xf32> to tensor<4x2xf32>
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {"y"}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x", "y"} (%x: tensor<4x2xf32>) {
    // CHECK: %[[ROWS:.*]] = spmd.all_gather ins(%[[OWN]] : tensor<4x2xf32>) outs(%{{.*}} : tensor<4x4xf32>) axis = 1 groups {{\[\[}}0, 1], [2, 3]] -> tensor<4x4xf32>
    %1 = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids} : (tensor<4x2xf32>) -> tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: %[[ALL:.*]] = spmd.shard_to_full %[[ROWS]] : tensor<4x4xf32> to tensor<8x4xf32>
  // CHECK-NEXT: return %[[ALL]]
  return %0 : tensor<8x4xf32>
}

//--- between.mlir
// Code between is of whole tensors: they are gathered, and each device takes its
// part again. Where the next computation takes the same parts, nothing moves.
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: %[[A:.*]] = spmd.full_to_shard
  // CHECK: %[[N:.*]] = stablehlo.negate %[[A]] : tensor<4xf32>
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%x: tensor<4xf32>) {
    %1 = stablehlo.negate %x : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: %[[ABS:.*]] = stablehlo.abs %[[N]] : tensor<4xf32>
  %2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%x: tensor<4xf32>) {
    %1 = stablehlo.abs %x : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: %[[ALL:.*]] = spmd.all_gather ins(%[[ABS]] : tensor<4xf32>) outs(%{{.*}} : tensor<8xf32>) axis = 0 -> tensor<8xf32>
  // CHECK: %[[R:.*]] = stablehlo.reverse %[[ALL]], dims = [0] : tensor<8xf32>
  %3 = stablehlo.reverse %2, dims = [0] : tensor<8xf32>
  // CHECK: %[[OWN:.*]] = stablehlo.dynamic_slice %[[R]], %{{.*}}, sizes = [4]
  // CHECK: stablehlo.exponential %[[OWN]]
  %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%x: tensor<4xf32>) {
    %1 = stablehlo.exponential %x : tensor<4xf32>
    sdy.return %1 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

//--- gspmd.mlir
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // The device of a tile is a number of the transposed grid.
  // CHECK: func.func @main(%{{.*}}: tensor<8xui32> {spmd.layout = #spmd.layout<mesh = [4], split = {{\[\[}}0]]>}
  // CHECK-SAME: %{{.*}}: tensor<8x2xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}1, 0], []]>}
  // CHECK-SAME: %{{.*}}: tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}1]]>}
  // CHECK-SAME: -> (tensor<8xui32> {spmd.layout = #spmd.layout<mesh = [4], split = {{\[\[}}0]]>}, tensor<2x2xf32>, tensor<2xf32>)
  func.func @main(%a: tensor<8xui32> {mhlo.sharding = "{devices=[4]<=[4]}"}, %b: tensor<8x2xf32>, %c: tensor<4xf32>) -> (tensor<8xui32>, tensor<2x2xf32>, tensor<2xf32>) {
    %0 = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{devices=[4]0,1,2,3}"} : (tensor<8xui32>) -> tensor<8xui32>
    %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"} : (tensor<8xui32>) -> tensor<2xui32>
    %2 = mhlo.copy %b {mhlo.sharding = "{devices=[4,1]<=[2,2]T(1,0)}"} : tensor<8x2xf32>
    %3 = stablehlo.custom_call @SPMDFullToShardShape(%2) {mhlo.sharding = "{manual}"} : (tensor<8x2xf32>) -> tensor<2x2xf32>
    %4 = mhlo.copy %c {mhlo.sharding = "{devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate}"} : tensor<4xf32>
    %5 = stablehlo.custom_call @SPMDFullToShardShape(%4) {mhlo.sharding = "{manual}"} : (tensor<4xf32>) -> tensor<2xf32>
    // CHECK: spmd.shard_to_full
    %6 = stablehlo.custom_call @SPMDShardToFullShape(%1) {mhlo.sharding = "{devices=[4]<=[4]}"} : (tensor<2xui32>) -> tensor<8xui32>
    return %6, %3, %5 : tensor<8xui32>, tensor<2x2xf32>, tensor<2xf32>
  }
}

//--- collectives.mlir
module attributes {mhlo.num_partitions = 2 : i32} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<4xf32>, %u: tensor<4xui32>, %p: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xui32>, tensor<4xi1>, tensor<2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<ui32>) {
    // CHECK: %[[D:.*]] = spmd.device_index
    // CHECK: %[[N:.*]] = tensor.from_elements
    // CHECK: spmd.all_reduce max
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.maximum %b, %a : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // Of unsigned integers there is no maximum: all are gathered, and combined.
    // CHECK: spmd.all_gather {{.*}} axis = 0 -> tensor<2x4xui32>
    // CHECK: stablehlo.maximum %{{.*}}, %{{.*}} : tensor<4xui32>
    %1 = "stablehlo.all_reduce"(%u) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<ui32>, %b: tensor<ui32>):
      %r = stablehlo.maximum %a, %b : tensor<ui32>
      stablehlo.return %r : tensor<ui32>
    }) : (tensor<4xui32>) -> tensor<4xui32>
    // CHECK: spmd.all_reduce prod {{.*}} tensor<4xi1>
    %2 = "stablehlo.all_reduce"(%p) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<i1>, %b: tensor<i1>):
      %r = stablehlo.and %a, %b : tensor<i1>
      stablehlo.return %r : tensor<i1>
    }) : (tensor<4xi1>) -> tensor<4xi1>
    // CHECK: spmd.reduce_scatter sum {{.*}} axis = 0 -> tensor<2xf32>
    %3 = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<2xf32>
    // CHECK: spmd.all_to_all {{.*}} split = 0 concat = 0
    %4 = "stablehlo.all_to_all"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64}> : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: spmd.permute {{.*}} pairs {{\[\[}}0, 1]]
    %5 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    // CHECK: stablehlo.convert %[[N]] : (tensor<i64>) -> tensor<ui32>
    %6 = stablehlo.partition_id : tensor<ui32>
    return %0, %1, %2, %3, %4, %5, %6 : tensor<4xf32>, tensor<4xui32>, tensor<4xi1>, tensor<2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<ui32>
  }
}

//--- grid.mlir
// Two replicas of two partitions: what the numbers of a group mean depends on
// the channel.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 2 : i32} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<16xf32>, tensor<4xf32>) {
    // CHECK: spmd.all_gather {{.*}} groups {{\[\[}}0, 2], [1, 3]]
    %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
    // CHECK: spmd.all_gather {{.*}} groups {{\[\[}}0, 2, 1, 3]]
    %1 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<16xf32>
    // CHECK: spmd.permute {{.*}} pairs {{\[\[}}0, 1], [2, 3]]
    %2 = "stablehlo.collective_permute"(%x) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1, %2 : tensor<8xf32>, tensor<16xf32>, tensor<4xf32>
  }
}

//--- annotated.mlir
// Whole tensors with shardings: layout constraints, on a mesh whose axis "x" is cut where one of them
// takes a part of it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<8x8xf32>)
// CHECK: %[[IN:.*]] = spmd.layout_constraint %[[A]], <mesh = [2, 4, 3], split = {{\[\[}}0], []]> open [1] : tensor<8x8xf32>
// CHECK: %[[NEG:.*]] = stablehlo.negate %[[IN]]
// CHECK: %[[OUT:.*]] = spmd.layout_constraint %[[NEG]], <mesh = [2, 4, 3], split = {{\[\[}}0, 1], []]>
// CHECK: return %[[OUT]]
sdy.mesh @mesh = <["x"=8, "y"=3]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {?}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %b = stablehlo.negate %a : tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}

//--- unreduced.mlir
// What a sharding leaves unreduced is reduced at once: its layout has no such axes.
// CHECK-LABEL: func.func @main
// CHECK: spmd.layout_constraint %{{.*}}, <mesh = [2], split = {{\[\[}}], [0]]> : tensor<8x8xf32>
// CHECK: spmd.layout_constraint %{{.*}}, <mesh = [2], split = {{\[\[}}], []]> : tensor<8x8xf32>
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  %b = sdy.sharding_constraint %a <@mesh, [{}, {}], unreduced={"x"}> : tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}

//--- priorities.mlir
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: tensor<8x8xf32>)
// CHECK: %[[IN:.*]] = spmd.layout_constraint %[[A]], <mesh = [2, 4], split = {{\[\[}}0], [1]]> open [1] priorities [0, 2] : tensor<8x8xf32>
// CHECK: spmd.same_layout %[[IN]] group = 3 : tensor<8x8xf32>
// CHECK: %[[NEG:.*]] = stablehlo.negate
// CHECK: spmd.same_layout %[[NEG]] group = 3 : tensor<8x8xf32>
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}p2]>}) -> tensor<8x8xf32> {
  sdy.sharding_group %a group_id=3 : tensor<8x8xf32>
  %b = stablehlo.negate %a : tensor<8x8xf32>
  sdy.sharding_group %b group_id=3 : tensor<8x8xf32>
  return %b : tensor<8x8xf32>
}
