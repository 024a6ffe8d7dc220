// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-mpmd-to-spmd --split-input-file --verify-diagnostics

#topology = #mpmd.topology<<"m1" : <["x"=12]>>>
!h = !mpmd.mesh_tensor<"m1", tensor<12x4xf32>, sharding=<@m1, [{"x":(1)2}, {}]>>
!k = !mpmd.mesh_tensor<"m1", tensor<12x4xf32>, sharding=<@m1, [{"x":(1)3}, {}]>>
// expected-error @below {{has shardings that cut axis "x" of mesh 'm1' in ways that do not fit each other}}
func.func @main(%x: !h, %y: !k) attributes {topology = #topology} {
  return
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=4]>>>
func.func @main() attributes {topology = #topology} {
  // expected-error @below {{stands outside a fragment; mpmd-assign-meshes gives it a mesh}}
  %0 = stablehlo.constant dense<0.0> : tensor<4xf32>
  return
}
