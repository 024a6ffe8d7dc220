// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-partition-tensors --split-input-file --verify-diagnostics

func.func @main(%x: tensor<8xf32> {spmd.layout = #spmd.layout<mesh = [2], split = [[0]]>}) -> tensor<8xf32> {
  // expected-error @below {{'spmd.full_to_shard' op works on one device's part, and spmd.layout_constraint on whole tensors; a function has one or the other}}
  %mine = spmd.full_to_shard %x : tensor<8xf32> to tensor<4xf32>
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  return %a : tensor<8xf32>
}

// -----

mgpu.device_config @config #mgpu.device_config<numDevices = 2>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %none = tensor.empty() : tensor<8xf32>
  %b = spmd.permute ins(%x : tensor<8xf32>) outs(%none : tensor<8xf32>) pairs [[0, 1]] -> tensor<8xf32>
  // expected-error @below {{asks for the layout of a tensor that differs between devices; gather or reduce it over all of them first}}
  %a = spmd.layout_constraint %b, <mesh = [2], split = [[0]]> : tensor<8xf32>
  return %a : tensor<8xf32>
}

// -----

// expected-error @below {{has layouts on two meshes, or on some of the devices; with layout constraints there must be one mesh, of all}}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  %b = spmd.layout_constraint %a, <mesh = [4], split = [[0]]> : tensor<8xf32>
  return %b : tensor<8xf32>
}

// -----

func.func @main(%x: tensor<8xf32>, %n: i1) -> tensor<8xf32> {
  // expected-error @below {{'scf.while' op has a layout constraint in its body; only the bodies of scf.for and scf.if without code of single devices are partitioned}}
  %r = scf.while (%v = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %a = spmd.layout_constraint %v, <mesh = [2], split = [[0]]> : tensor<8xf32>
    scf.condition(%n) %a : tensor<8xf32>
  } do {
  ^bb0(%v: tensor<8xf32>):
    scf.yield %v : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
