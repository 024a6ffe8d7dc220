// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-shard-to-spmd --split-input-file --verify-diagnostics

// expected-error @below {{grid 'grid' has a size '?'; write how many devices there are}}
shard.grid @grid(shape = 2x?)

// -----

// expected-error @below {{sizes of the mesh must be at least 1, and their product at most 65536 [layout_c1]}}
shard.grid @grid(shape = 70000x70000)

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{names axis 5 of grid 'grid', which has 1}}
  %s = shard.sharding @grid split_axes = [[5]] : !shard.sharding
  %y = shard.shard %x to %s : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @a(shape = 2)
// expected-error @below {{grids 'a' and 'b' have different numbers of devices}}
shard.grid @b(shape = 4)

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{the reduction 'generic' of 'tensor<4xf32>' is not supported}}
  %y = shard.all_reduce %x on @grid grid_axes = [0] reduction = generic : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no 'shard.recv' behind it in its block; write both, one after the other}}
  %y = shard.send %x on @grid grid_axes = [0] destination = [1] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has no 'shard.send' of the same type, grid and axes before it in its block; write both, one after the other}}
  %y = shard.recv %x on @grid grid_axes = [0] source = [1] : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 4)
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %s = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  // expected-error @below {{dimension 0 cannot be cut in 4 parts}}
  %y = shard.shard %x to %s : tensor<3xf32>
  return %y : tensor<3xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has 1 offsets more than parts that it cuts}}
  %s = shard.sharding @grid split_axes = [[0]] sharded_dims_offsets = [0, 3, 4, 4] : !shard.sharding
  %y = shard.shard %x to %s : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has offsets that do not grow; each device must have a part}}
  %s = shard.sharding @grid split_axes = [[0]] sharded_dims_offsets = [0, 4, 4] : !shard.sharding
  %y = shard.shard %x to %s : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has offsets from 0 to 5 of a dimension of 4 elements}}
  %s = shard.sharding @grid split_axes = [[0]] sharded_dims_offsets = [0, 3, 5] : !shard.sharding
  %y = shard.shard %x to %s : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %s = shard.get_sharding %x : tensor<4xf32> -> !shard.sharding
  // expected-error @below {{takes the sharding of a tensor that has no 'shard.shard'; annotate that tensor}}
  %y = shard.shard %x to %s : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

shard.grid @grid(shape = 2x2)
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{has halos of 2 and 1 in dimension 0 of 'tensor<4xf32>', whose other elements are fewer}}
  %y = shard.update_halo %x on @grid split_axes = [[0]] halo_sizes = [2, 1] : tensor<4xf32>
  return %y : tensor<4xf32>
}
