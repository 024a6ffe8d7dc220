// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

// -----

// expected-error @below {{sizes of the mesh must be at least 1, and their product at most 65536 [layout_c1]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [0], split = [[]]>})

// -----

// expected-error @below {{sizes of the mesh must be at least 1, and their product at most 65536 [layout_c1]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [65536, 65536], split = [[]]>})

// -----

// expected-error @below {{the mesh has no axis 1 [layout_c2]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[1]]>})

// -----

// expected-error @below {{axis 0 is named twice [layout_c3]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0, 0]]>})

// -----

// expected-error @below {{spmd.layout is for ranked tensors of static shape, not 'memref<8xf32>' [layout_c4]}}
func.func @f(%x: memref<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) {
  return
}

// -----

// expected-error @below {{spmd.layout is for ranked tensors of static shape, not 'tensor<?xf32>' [layout_c4]}}
func.func @f(%x: tensor<?xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) {
  return
}

// -----

// expected-error @below {{'split' has 2 lists; 'tensor<8xf32>' has 1 dimensions [layout_c5]}}
func.func @f(%x: tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0], []]>}) {
  return
}

// -----

// expected-error @below {{dimension 0 of 'tensor<3xf32>' cannot be cut in 4 parts [layout_c6]}}
func.func @f(%x: tensor<3xf32> {spmd.layout = #spmd.layout<mesh = [4], split = [[0]]>}) {
  return
}

// -----

// expected-error @below {{spmd.other is not an attribute of an argument or result [layout_c7]}}
func.func @f(%x: tensor<8xf32> {spmd.other = 1}) {
  return
}

// -----

// expected-error @below {{spmd.layout must be a #spmd.layout [layout_c7]}}
func.func @f(%x: tensor<8xf32> {spmd.layout = 1}) {
  return
}

// -----

// expected-error @below {{spmd.alias of result 0 must be the number of an argument [layout_c8]}}
func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32> {spmd.alias = 1}) {
  return %x : tensor<8xf32>
}

// -----

// expected-error @below {{result 0 and argument 0, which it is the next state of, must have the same type and layout [layout_c9]}}
func.func @f(%x: tensor<8xf32>, %y: tensor<4xf32>) -> (tensor<4xf32> {spmd.alias = 0}) {
  return %y : tensor<4xf32>
}

// -----

func.func @f(%x: tensor<8xf32>) {
  %y = tensor.empty() : tensor<8xf32>
  // expected-error @below {{'spmd.full_to_shard' op takes an argument of the function [full_to_shard_c1]}}
  %e = spmd.full_to_shard %y : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) {
  // expected-error @below {{'spmd.full_to_shard' op must have a shard of shape 'tensor<4xf32>', not 'tensor<8xf32>' [full_to_shard_c2]}}
  %y = spmd.full_to_shard %x : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.full_to_shard' op must keep the element type [full_to_shard_c3]}}
  %y = spmd.full_to_shard %x : tensor<8xf32> to tensor<8xf64>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.shard_to_full' op must have a result that is returned [shard_to_full_c1]}}
  %y = spmd.shard_to_full %x : tensor<8xf32> to tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) -> (tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) {
  // expected-error @below {{'spmd.shard_to_full' op must have a shard of shape 'tensor<4xf32>', not 'tensor<8xf32>' [shard_to_full_c2]}}
  %y = spmd.shard_to_full %x : tensor<8xf32> to tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @f(%x: tensor<8xi32>) -> tensor<8xf32> {
  // expected-error @below {{'spmd.shard_to_full' op must keep the element type [shard_to_full_c3]}}
  %y = spmd.shard_to_full %x : tensor<8xi32> to tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
  // expected-error @below {{'spmd.distribute' op must have a shard of shape 'tensor<4xf32>', not 'memref<8xf32>' [distribute_c1]}}
  spmd.distribute #spmd.layout<mesh = [2], split = [[0]]> ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
  return
}

// -----

func.func @f(%a: memref<8xf32>, %b: memref<8xf32>) {
  // expected-error @below {{'spmd.collect' op must have a shard of shape 'tensor<4xf32>', not 'memref<8xf32>' [collect_c1]}}
  spmd.collect #spmd.layout<mesh = [2], split = [[0]]> ins(%a : memref<8xf32>) outs(%b : memref<8xf32>)
  return
}

// -----

func.func @f(%a: memref<8xf32>, %b: memref<4xf64>) {
  // expected-error @below {{'spmd.distribute' op must keep the element type [distribute_c2]}}
  spmd.distribute #spmd.layout<mesh = [2], split = [[0]]> ins(%a : memref<8xf32>) outs(%b : memref<4xf64>)
  return
}

// -----

func.func @f(%a: memref<4xf64>, %b: memref<8xf32>) {
  // expected-error @below {{'spmd.collect' op must keep the element type [collect_c2]}}
  spmd.collect #spmd.layout<mesh = [2], split = [[0]]> ins(%a : memref<4xf64>) outs(%b : memref<8xf32>)
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_reduce' op must have groups of the same size, of one device or more [all_reduce_c3]}}
  spmd.all_reduce sum ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) groups [[0, 1], [2]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_reduce' op has device 1 twice in its groups, or it is negative [all_reduce_c3]}}
  spmd.all_reduce sum ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) groups [[0, 1], [2, 1]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_reduce' op must have at least one group [all_reduce_c3]}}
  spmd.all_reduce sum ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) groups []
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_reduce' op must have one shape in ins and outs [all_reduce_c1]}}
  spmd.all_reduce sum ins(%a : memref<4x6xf32>) outs(%d : memref<4x3xf32>)
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_reduce' op must have one element type in ins and outs [all_reduce_c2]}}
  spmd.all_reduce sum ins(%a : memref<4x6xf32>) outs(%c : memref<4x6xi32>)
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_gather' op has no dimension 2 [all_gather_c1]}}
  spmd.all_gather ins(%d : memref<4x3xf32>) outs(%a : memref<4x6xf32>) axis = 2
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_gather' op must have sizes that differ in dimension 1 alone, there by the size of a group, not 'memref<4x3xf32>' and 'memref<4x6xf32>' [all_gather_c2]}}
  spmd.all_gather ins(%d : memref<4x3xf32>) outs(%a : memref<4x6xf32>) axis = 1 groups [[0, 1, 2]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_gather' op must have one element type in ins and outs [all_gather_c3]}}
  spmd.all_gather ins(%e : memref<4x3xi32>) outs(%a : memref<4x6xf32>) axis = 1
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.reduce_scatter' op has no dimension -1 [reduce_scatter_c1]}}
  spmd.reduce_scatter sum ins(%a : memref<4x6xf32>) outs(%d : memref<4x3xf32>) axis = -1
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.reduce_scatter' op must have sizes that differ in dimension 0 alone, there by the size of a group, not 'memref<4x3xf32>' and 'memref<4x6xf32>' [reduce_scatter_c2]}}
  spmd.reduce_scatter sum ins(%a : memref<4x6xf32>) outs(%d : memref<4x3xf32>) axis = 0
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.reduce_scatter' op must have one element type in ins and outs [reduce_scatter_c3]}}
  spmd.reduce_scatter sum ins(%a : memref<4x6xf32>) outs(%e : memref<4x3xi32>) axis = 1
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_to_all' op splits and concatenates dimensions of its input [all_to_all_c1]}}
  spmd.all_to_all ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) split = 0 concat = 2
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_to_all' op cannot split dimension 0 of 'memref<4x6xf32>' into 3 [all_to_all_c2]}}
  spmd.all_to_all ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) split = 0 concat = 1 groups [[0, 1, 2]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_to_all' op must give 'tensor<2x12xf32>' [all_to_all_c3]}}
  spmd.all_to_all ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) split = 0 concat = 1 groups [[0, 1]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_to_all' op must have one element type in ins and outs [all_to_all_c4]}}
  spmd.all_to_all ins(%a : memref<4x6xf32>) outs(%c : memref<4x6xi32>) split = 0 concat = 0
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.broadcast' op has no rank 2 in its groups [broadcast_c1]}}
  spmd.broadcast ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) root = 2 groups [[0, 1]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.broadcast' op must have one shape in ins and outs [broadcast_c2]}}
  spmd.broadcast ins(%a : memref<4x6xf32>) outs(%d : memref<4x3xf32>) root = 0
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.broadcast' op must have one element type in ins and outs [broadcast_c3]}}
  spmd.broadcast ins(%a : memref<4x6xf32>) outs(%c : memref<4x6xi32>) root = 0
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.permute' op must have pairs of two devices [permute_c1]}}
  spmd.permute ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) pairs [[0, 1, 2]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.permute' op sends from device 0 twice [permute_c2]}}
  spmd.permute ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) pairs [[0, 1], [0, 2]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.permute' op sends to device 1 twice [permute_c3]}}
  spmd.permute ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) pairs [[0, 1], [2, 1]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.permute' op must have one shape in ins and outs [permute_c4]}}
  spmd.permute ins(%a : memref<4x6xf32>) outs(%d : memref<4x3xf32>) pairs []
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.permute' op must have one element type in ins and outs [permute_c5]}}
  spmd.permute ins(%a : memref<4x6xf32>) outs(%c : memref<4x6xi32>) pairs []
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{expected sum, prod, min or max}}
  spmd.all_reduce mean ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>)
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_gather' op has device 1 twice in its groups, or it is negative [all_gather_c4]}}
  spmd.all_gather ins(%d : memref<4x3xf32>) outs(%a : memref<4x6xf32>) axis = 1 groups [[0, 1], [2, 1]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.reduce_scatter' op has device 1 twice in its groups, or it is negative [reduce_scatter_c4]}}
  spmd.reduce_scatter sum ins(%a : memref<4x6xf32>) outs(%d : memref<4x3xf32>) axis = 1 groups [[0, 1], [2, 1]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.all_to_all' op has device 1 twice in its groups, or it is negative [all_to_all_c5]}}
  spmd.all_to_all ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) split = 0 concat = 0 groups [[0, 1], [2, 1]]
  return
}

// -----

func.func @f(%a: memref<4x6xf32>, %b: memref<4x6xf32>, %c: memref<4x6xi32>, %d: memref<4x3xf32>, %e: memref<4x3xi32>, %g: memref<12xf32>) {
  // expected-error @below {{'spmd.broadcast' op has device 1 twice in its groups, or it is negative [broadcast_c4]}}
  spmd.broadcast ins(%a : memref<4x6xf32>) outs(%b : memref<4x6xf32>) root = 0 groups [[0, 1], [2, 1]]
  return
}

// -----

// expected-error @below {{results 0 and 1 are both the next state of argument 0 [layout_c10]}}
func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32> {spmd.alias = 0}, tensor<4xf32> {spmd.alias = 0}) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @below {{spmd.alias is for tensors, not 'f32' [layout_c8]}}
func.func @f(%x: f32) -> (f32 {spmd.alias = 0}) {
  return %x : f32
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.layout_constraint' op has a layout that 'tensor<8xf32>' cannot have [layout_constraint_c1]}}
  %y = spmd.layout_constraint %x, <mesh = [2], split = [[0], []]> : tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<4xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{'spmd.move' op must have layouts on one mesh, or both with 'first' [move_c1]}}
  %y = spmd.move from <mesh = [2], split = [[0]]> to <mesh = [4], split = [[]]> full = [8] ins(%x : tensor<4xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<5xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{'spmd.move' op must have an input that is a shard under 'from' [move_c2]}}
  %y = spmd.move from <mesh = [2], split = [[0]]> to <mesh = [2], split = [[]]> full = [8] ins(%x : tensor<5xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32>, %o: tensor<8xf32>) {
  // expected-error @below {{'spmd.move' op must have an init that is a shard under 'to' [move_c3]}}
  %y = spmd.move from <mesh = [2], split = [[0]]> to <mesh = [2], split = [[]]> full = [9] ins(%x : tensor<?xf32>) outs(%o : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32>, %o: tensor<9xf64>) {
  // expected-error @below {{'spmd.move' op must keep the element type [move_c4]}}
  %y = spmd.move from <mesh = [2], split = [[0]]> to <mesh = [2], split = [[]]> full = [9] ins(%x : tensor<?xf32>) outs(%o : tensor<9xf64>) -> tensor<9xf64>
  return
}

// -----

// expected-error @below {{'first' must be the number of a device, and the last one of the mesh below 65536 [layout_c1]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], first = 65535, split = [[]]>})

// -----

func.func @f() {
  // expected-error @below {{'spmd.on' op has no device in 2 to 2 [on_c1]}}
  spmd.on 2 to 2 {
  }
  return
}

// -----

func.func @f() {
  spmd.on 2 to 4 {
    // expected-error @below {{'spmd.on' op names devices that do not run the 'spmd.on' around it, 2 to 4 [on_c2]}}
    spmd.on 3 to 5 {
    }
  }
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.on' op must yield values of the types of its results [on_c3]}}
  %y = spmd.on 0 to 2 -> tensor<4xf32> {
    spmd.yield %x : tensor<8xf32>
  }
  return
}

// -----

func.func private @g(tensor<8xf32>) -> tensor<8xf32>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.call' op must have a layout for each operand and result, and at least one [call_c1]}}
  %y = spmd.call @g(%x) in [] out [#spmd.layout<mesh = [2], first = 0, split = [[]]>] : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func private @g(tensor<8xf32>) -> tensor<8xf32>
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.call' op must have layouts with 'first' and of the same devices [call_c1]}}
  %y = spmd.call @g(%x) in [#spmd.layout<mesh = [2], first = 2, split = [[]]>] out [#spmd.layout<mesh = [2], split = [[]]>] : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.call' op calls g, which is not a function of the module [call_c2]}}
  spmd.call @g(%x) in [#spmd.layout<mesh = [2], first = 0, split = [[]]>] out [] : (tensor<8xf32>) -> ()
  return
}

// -----

func.func private @g(tensor<8xf32>)
func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{'spmd.call' op has operands or results that are not shards, under their layouts, of those of g [call_c3]}}
  spmd.call @g(%x) in [#spmd.layout<mesh = [2], first = 0, split = [[0]]>] out [] : (tensor<8xf32>) -> ()
  return
}

// -----

// expected-error @below {{'offsets' has 1 lists, and 'split' 2 [layout_c11]}}
func.func private @f(tensor<8x4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0], []], offsets = [[0, 3, 8]]>})

// -----

// expected-error @below {{'offsets' of dimension 0 must be 3 growing numbers from 0 [layout_c11]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]], offsets = [[0, 8]]>})

// -----

// expected-error @below {{'offsets' of dimension 0 must be 3 growing numbers from 0 [layout_c11]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]], offsets = [[1, 3, 8]]>})

// -----

// expected-error @below {{'offsets' of dimension 0 must be 3 growing numbers from 0 [layout_c11]}}
func.func private @f(tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]], offsets = [[0, 8, 8]]>})

// -----

// expected-error @below {{'offsets' must end with the sizes of 'tensor<9xf32>' [layout_c12]}}
func.func private @f(tensor<9xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]], offsets = [[0, 3, 8]]>})

// -----

// expected-error @below {{'halos' must have a list for each dimension, empty or of two numbers from 0 on [layout_c13]}}
func.func @few_halos(%x: tensor<9x4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0], []], halos = [[1, 1]]>}) { return }

// -----

// expected-error @below {{'halos' must have a list for each dimension, empty or of two numbers from 0 on [layout_c13]}}
func.func @negative_halo(%x: tensor<9xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]], halos = [[-1, 1]]>}) { return }

// -----

// expected-error @below {{an argument or result has parts without 'halos' [layout_c14]}}
func.func @halo_of_argument(%x: tensor<9xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]], halos = [[0, 1]]>}) { return }

// -----

func.func @group(%x: tensor<9xf32>, %y: tensor<8xf32>) {
  // expected-error @below {{is of a group whose tensors have different or dynamic shapes [same_layout_c1]}}
  spmd.same_layout %x group = 1 : tensor<9xf32>
  spmd.same_layout %y group = 1 : tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{gives nothing [custom_call_c1]}}
  spmd.custom_call "k" ins(%x : tensor<8xf32>) outs()
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{has 'source' or 'entry' without the other [custom_call_c2]}}
  %y = spmd.custom_call "k" from "k.cu" ins() outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{is registered, and has the kernel "k.cu" [custom_call_c5]}}
  %y = spmd.custom_call "k" registered "" from "k.cu" entry "k" ins() outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>) {
  // expected-error @below {{keeps init 1 of 1 [custom_call_c3]}}
  %y = spmd.custom_call "k" kept [1] ins() outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<?xf32>) {
  // expected-error @below {{has an operand of type 'tensor<?xf32>', whose sizes are not static [custom_call_c4]}}
  %y = spmd.custom_call "k" ins() outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

#q = affine_map<(b, q, k, d, v) -> (q, d)>
#k = affine_map<(b, q, k, d, v) -> (k, d)>
#v = affine_map<(b, q, k, d, v) -> (k, v)>
#r = affine_map<(b, q, k, d, v) -> (q, v)>
func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %r: tensor<4x5xf32>) {
  // expected-error @below {{has 3 inputs and 4 maps of inputs [attention_c1]}}
  %y = spmd.attention <[1], queries = 4, keys = 6, head = 8, value = 5 : [#q, #k, #v, #r]> [#q]
      ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>) outs(%r : tensor<4x5xf32>) {
  ^bb0(%s: f32, %b: index, %i: index, %j: index):
    spmd.score %s : f32
  } -> tensor<4x5xf32>
  return
}

// -----

#q = affine_map<(b, q, k, d, v) -> (q, d)>
#k = affine_map<(b, q, k, d, v) -> (k, d)>
#v = affine_map<(b, q, k, d, v) -> (k, v)>
#r = affine_map<(b, q, k, d, v) -> (q, v)>
func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %r: tensor<4x5xf32>) {
  // expected-error @below {{has a body of other numbers than a product, 0 further elements and 3 indices [attention_c2]}}
  %y = spmd.attention <[1], queries = 4, keys = 6, head = 8, value = 5 : [#q, #k, #v, #r]> []
      ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>) outs(%r : tensor<4x5xf32>) {
  ^bb0(%s: f32, %b: index, %i: index):
    spmd.score %s : f32
  } -> tensor<4x5xf32>
  return
}

// -----

#q = affine_map<(b, q, k, d, v) -> (q, d)>
#k = affine_map<(b, q, k, d, v) -> (k, d)>
#v = affine_map<(b, q, k, d, v) -> (k, v)>
#r = affine_map<(b, q, k, d, v) -> (q, v)>
func.func @f(%q: tensor<4x8xf32>, %k: tensor<6x8xf32>, %v: tensor<6x5xf32>, %r: tensor<4x5xf32>) {
  // expected-error @below {{reads or writes elements that 'tensor<6x8xf32>' does not have [attention_c3]}}
  %y = spmd.attention <[1], queries = 4, keys = 7, head = 8, value = 5 : [#q, #k, #v, #r]> []
      ins(%q, %k, %v : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6x5xf32>) outs(%r : tensor<4x5xf32>) {
  ^bb0(%s: f32, %b: index, %i: index, %j: index):
    spmd.score %s : f32
  } -> tensor<4x5xf32>
  return
}
