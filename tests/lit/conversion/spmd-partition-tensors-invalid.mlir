// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-partition-tensors --split-input-file --verify-diagnostics

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]]> : tensor<8xf32>
  // expected-error @below {{'spmd.all_reduce' op works on one device's part, and spmd.layout_constraint on whole tensors; a function has one or the other}}
  %b = spmd.all_reduce sum ins(%a : tensor<8xf32>) outs(%a : tensor<8xf32>) -> tensor<8xf32>
  return %b : tensor<8xf32>
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
  // expected-error @below {{'scf.while' op has a layout constraint in its body; only the bodies of scf.for and scf.if are partitioned}}
  %r = scf.while (%v = %x) : (tensor<8xf32>) -> tensor<8xf32> {
    %a = spmd.layout_constraint %v, <mesh = [2], split = [[0]]> : tensor<8xf32>
    scf.condition(%n) %a : tensor<8xf32>
  } do {
  ^bb0(%v: tensor<8xf32>):
    scf.yield %v : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

// expected-error @below {{has layouts with 'offsets'; with layout constraints a dimension is cut in parts as equal as they can be}}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %a = spmd.layout_constraint %x, <mesh = [2], split = [[0]], offsets = [[0, 3, 8]]> : tensor<8xf32>
  return %a : tensor<8xf32>
}
