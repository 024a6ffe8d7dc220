// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-mpmd-to-spmd --split-input-file --verify-diagnostics

#topology = #mpmd.topology<<"m1" : <["x"=2], device_ids=[1, 0]>>>
// expected-error @below {{has mesh 'm1', which lists its devices; they must be in order}}
func.func @main() attributes {topology = #topology} {
  return
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!h = !mpmd.mesh_tensor<"m1", tensor<8x4xf32>, memory_kind="pinned_host">
// expected-error @below {{has a tensor in the hosts' memory (memory_kind = "pinned_host"); this version keeps all on the devices}}
func.func @main(%x: !h) attributes {topology = #topology} {
  return
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=4]>>>
!h = !mpmd.mesh_tensor<"m1", tensor<8x4xf32>, sharding=<@m1, [{"x":(1)2}, {}]>>
// expected-error @below {{has a sharding with a part of axis 'x'}}
func.func @main(%x: !h) attributes {topology = #topology} {
  return
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=4]>>>
func.func @main() attributes {topology = #topology} {
  // expected-error @below {{stands outside a fragment; mpmd-assign-meshes gives it a mesh}}
  %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
  return
}
