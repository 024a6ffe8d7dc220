// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-shard-to-spmd --canonicalize | FileCheck %s

// CHECK: mgpu.device_config @config #mgpu.device_config<numDevices = 6>
shard.grid @grid(shape = 2x3)

// CHECK-LABEL: func.func @annotation
// CHECK: spmd.layout_constraint %{{.*}}, <mesh = [2, 3], split = {{\[\[}}], [1, 0]]> : tensor<4x12xf32>
func.func @annotation(%x: tensor<4x12xf32>) -> tensor<4x12xf32> {
  %s = shard.sharding @grid split_axes = [[], [1, 0]] : !shard.sharding
  %y = shard.shard %x to %s : tensor<4x12xf32>
  return %y : tensor<4x12xf32>
}

// Groups differ along the axes alone, the first axis outermost.
// CHECK-LABEL: func.func @gather
// CHECK: spmd.all_gather ins(%{{.*}} : tensor<2x3xf32>) outs(%{{.*}} : tensor<12x3xf32>) axis = 0 groups {{\[\[}}0, 3, 1, 4, 2, 5]]
func.func @gather(%x: tensor<2x3xf32>) -> tensor<12x3xf32> {
  %y = shard.all_gather %x on @grid grid_axes = [1, 0] gather_axis = 0 : tensor<2x3xf32> -> tensor<12x3xf32>
  return %y : tensor<12x3xf32>
}

// Members reduce in the type of the result; a mean is a sum that is divided.
// CHECK-LABEL: func.func @average
// CHECK: %[[WIDE:.*]] = arith.extf %{{.*}} : tensor<2xf32> to tensor<2xf64>
// CHECK: %[[SUM:.*]] = spmd.all_reduce sum ins(%[[WIDE]] : tensor<2xf64>) {{.*}} groups {{\[\[}}0, 3], [1, 4], [2, 5]]
// CHECK: arith.divf %[[SUM]]
func.func @average(%x: tensor<2xf32>) -> tensor<2xf64> {
  %y = shard.all_reduce %x on @grid grid_axes = [0] reduction = average : tensor<2xf32> -> tensor<2xf64>
  return %y : tensor<2xf64>
}

// Bits are gathered, and combined in rank order.
// CHECK-LABEL: func.func @bits
// CHECK: %[[ALL:.*]] = spmd.all_gather {{.*}} outs(%{{.*}} : tensor<2x4xi32>)
// CHECK-COUNT-2: tensor.extract_slice %[[ALL]]
// CHECK: arith.xori
func.func @bits(%x: tensor<4xi32>) -> tensor<4xi32> {
  %y = shard.all_reduce %x on @grid grid_axes = [0] reduction = bitwise_xor : tensor<4xi32> -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// A send with the recv behind it, from (0, 2) to (1, 0).
// CHECK-LABEL: func.func @message
// CHECK: spmd.permute ins(%{{.*}}) outs(%{{.*}}) pairs {{\[\[}}2, 3]]
func.func @message(%x: tensor<4xi32>) -> tensor<4xi32> {
  %s = shard.send %x on @grid grid_axes = [0, 1] destination = [1, 0] : (tensor<4xi32>) -> tensor<4xi32>
  %y = shard.recv %x on @grid grid_axes = [0, 1] source = [0, 2] : (tensor<4xi32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// CHECK-LABEL: func.func @shift
// CHECK: spmd.permute {{.*}} pairs {{\[\[}}0, 2], [3, 5], [1, 0], [4, 3], [2, 1], [5, 4]]
func.func @shift(%x: tensor<4xi32>) -> tensor<4xi32> {
  %y = shard.shift %x on @grid grid_axes = [1] shift_axis = 1 offset = -1 rotate : tensor<4xi32> -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// The lower halo comes from the device before, where there is one.
// CHECK-LABEL: func.func @halo
// CHECK: %[[LAST:.*]] = tensor.extract_slice %{{.*}}[6] [2] [1]
// CHECK: %[[GOT:.*]] = spmd.permute ins(%[[LAST]] {{.*}} pairs {{\[\[}}0, 3], [1, 4], [2, 5]]
// CHECK: %[[NEW:.*]] = arith.select %{{.*}}, %{{.*}}, %[[GOT]]
// CHECK: tensor.insert_slice %[[NEW]] into %{{.*}}[0] [2] [1]
func.func @halo(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = shard.update_halo %x on @grid split_axes = [[0]] halo_sizes = [2, 0] : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: func.func @indices
// CHECK-DAG: %[[DEVICE:.*]] = spmd.device_index
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[COLUMN:.*]] = arith.remui %[[DEVICE]], %[[THREE]]
// CHECK: return %[[COLUMN]], %[[THREE]]
func.func @indices() -> (index, index) {
  %place = shard.process_multi_index on @grid axes = [1] : index
  %size = shard.grid_shape @grid axes = [1] : index
  return %place, %size : index, index
}
