// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s | mgpu-opt | FileCheck %s
// RUN: mgpu-opt %s --mlir-print-op-generic | mgpu-opt | FileCheck %s

#rows = #spmd.layout<mesh = [2, 2], split = [[0], []]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{.*}}: tensor<8x4xf32> {spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}0], []]>}
// CHECK-SAME: -> (tensor<8x4xf32> {spmd.alias = 0 : i64, spmd.layout = #spmd.layout<mesh = [2, 2], split = {{\[\[}}0], []]>})
func.func @main(%x: tensor<8x4xf32> {spmd.layout = #rows})
    -> (tensor<8x4xf32> {spmd.alias = 0, spmd.layout = #rows}) {
  // CHECK: spmd.device_index : index
  %d = spmd.device_index : index
  // CHECK: spmd.full_to_shard %{{.*}} : tensor<8x4xf32> to tensor<4x4xf32>
  %a = spmd.full_to_shard %x : tensor<8x4xf32> to tensor<4x4xf32>
  // CHECK: spmd.all_reduce sum ins(%{{.*}} : tensor<4x4xf32>) outs(%{{.*}} : tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = spmd.all_reduce sum ins(%a : tensor<4x4xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = tensor.empty() : tensor<4x8xf32>
  // CHECK: spmd.all_gather ins(%{{.*}} : tensor<4x4xf32>) outs(%{{.*}} : tensor<4x8xf32>) axis = 1 groups {{\[\[}}0, 1], [2, 3]] -> tensor<4x8xf32>
  %g = spmd.all_gather ins(%b : tensor<4x4xf32>) outs(%e : tensor<4x8xf32>) axis = 1 groups [[0, 1], [2, 3]] -> tensor<4x8xf32>
  // CHECK: spmd.reduce_scatter max ins(%{{.*}} : tensor<4x8xf32>) outs(%{{.*}} : tensor<4x4xf32>) axis = 1 groups {{\[\[}}0, 2], [1, 3]] -> tensor<4x4xf32>
  %s = spmd.reduce_scatter max ins(%g : tensor<4x8xf32>) outs(%b : tensor<4x4xf32>) axis = 1 groups [[0, 2], [1, 3]] -> tensor<4x4xf32>
  %f = tensor.empty() : tensor<1x16xf32>
  // CHECK: spmd.all_to_all ins(%{{.*}} : tensor<4x4xf32>) outs(%{{.*}} : tensor<1x16xf32>) split = 0 concat = 1 -> tensor<1x16xf32>
  %t = spmd.all_to_all ins(%s : tensor<4x4xf32>) outs(%f : tensor<1x16xf32>) split = 0 concat = 1 -> tensor<1x16xf32>
  // CHECK: spmd.broadcast ins(%{{.*}} : tensor<1x16xf32>) outs(%{{.*}} : tensor<1x16xf32>) root = 2 -> tensor<1x16xf32>
  %u = spmd.broadcast ins(%t : tensor<1x16xf32>) outs(%f : tensor<1x16xf32>) root = 2 -> tensor<1x16xf32>
  // CHECK: spmd.permute ins(%{{.*}} : tensor<1x16xf32>) outs(%{{.*}} : tensor<1x16xf32>) pairs {{\[\[}}0, 1], [1, 0]] -> tensor<1x16xf32>
  %p = spmd.permute ins(%u : tensor<1x16xf32>) outs(%f : tensor<1x16xf32>) pairs [[0, 1], [1, 0]] -> tensor<1x16xf32>
  // CHECK: spmd.shard_to_full %{{.*}} : tensor<4x4xf32> to tensor<8x4xf32>
  %y = spmd.shard_to_full %b : tensor<4x4xf32> to tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

// CHECK-LABEL: func.func @some_devices
// CHECK-SAME: spmd.layout = #spmd.layout<mesh = [2], first = 2, split = {{\[\[}}0]]>
func.func @some_devices(%x: tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], first = 2, split = [[0]]>}) {
  // CHECK: %{{.*}} = spmd.on 2 to 4 -> tensor<8xf32> {
  // CHECK: spmd.yield %{{.*}} : tensor<8xf32>
  %y = spmd.on 2 to 4 -> tensor<8xf32> {
    %z = arith.addf %x, %x : tensor<8xf32>
    spmd.yield %z : tensor<8xf32>
  }
  // CHECK: spmd.on 0 to 1 {
  // CHECK-NEXT: }
  spmd.on 0 to 1 {
  }
  return
}

// CHECK-LABEL: func.func @on_memrefs
func.func @on_memrefs(%full: memref<8x4xf32>, %part: memref<4x4xf32, strided<[4, 1], offset: ?>>) {
  // CHECK: spmd.distribute <mesh = [2, 2], split = {{\[\[}}0], []]> ins(%{{.*}} : memref<8x4xf32>) outs(%{{.*}} : memref<4x4xf32, strided<[4, 1], offset: ?>>)
  spmd.distribute #rows ins(%full : memref<8x4xf32>) outs(%part : memref<4x4xf32, strided<[4, 1], offset: ?>>)
  // CHECK: spmd.collect <mesh
  spmd.collect #rows ins(%part : memref<4x4xf32, strided<[4, 1], offset: ?>>) outs(%full : memref<8x4xf32>)
  // CHECK: spmd.all_reduce min ins(%{{.*}}) outs(%{{.*}}){{$}}
  spmd.all_reduce min ins(%full : memref<8x4xf32>) outs(%full : memref<8x4xf32>)
  return
}

// CHECK-LABEL: func.func private @offsets
// CHECK-SAME: #spmd.layout<mesh = [2], split = {{\[\[}}0], []], offsets = {{\[\[}}0, 3, 8], []]>
func.func private @offsets(tensor<8x4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0], []], offsets = [[0, 3, 8], []]>})

// CHECK-LABEL: func.func @constraints
// CHECK: spmd.layout_constraint %{{.*}}, <mesh = [2], split = {{\[\[}}0], []], halos = {{\[\[}}1, 2], []]> open [1] priorities [0, 1]
// CHECK: spmd.same_layout %{{.*}} group = 4 : tensor<8x4xf32>
func.func @constraints(%x: tensor<8x4xf32>) {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0], []], halos = [[1, 2], []]> open [1] priorities [0, 1] : tensor<8x4xf32>
  spmd.same_layout %a group = 4 : tensor<8x4xf32>
  return
}

// CHECK-LABEL: func @custom_call
func.func @custom_call(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK: spmd.custom_call "scale" from "scale.cu" entry "scale" kept [0] ins(%{{.*}} : tensor<8xf32>) outs(%{{.*}} : tensor<8xf32>) -> tensor<8xf32>
  %0 = spmd.custom_call "scale" from "scale.cu" entry "scale" kept [0] ins(%x : tensor<8xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  // CHECK: spmd.custom_call "noise" ins() outs(%{{.*}} : tensor<8xf32>) -> tensor<8xf32>
  %1 = spmd.custom_call "noise" ins() outs(%0 : tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
