// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-select-entry --split-input-file --verify-diagnostics

// expected-error @below {{is called, so its arguments and results are shards; layouts and spmd.alias are for the entry function}}
func.func private @f(%x: tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'spmd.full_to_shard' op is for the entry function alone}}
  %y = spmd.full_to_shard %x : tensor<4xf32> to tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// What the entry does not call may be another entry.
func.func @other(%x: tensor<4xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) {
  return
}
func.func @main() {
  return
}
