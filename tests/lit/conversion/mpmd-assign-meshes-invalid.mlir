// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-assign-meshes --split-input-file --verify-diagnostics
// RUN: not mgpu-opt %s --mpmd-assign-meshes=assign=f=m3 --split-input-file 2>&1 | FileCheck %s
// CHECK: cannot take 'f=m3' of --assign; it is NAME=MESH, and the meshes are m1, m2

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> attributes {topology = #topology} {
  // expected-error @below {{'mpmd.named_computation' op has no mesh; say one with --assign f=MESH}}
  %f = mpmd.named_computation<"f"> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
// expected-error @below {{has an argument of type '!stablehlo.token'; a program over several meshes takes ranked tensors}}
func.func @main(%a: !stablehlo.token) attributes {topology = #topology} {
  return
}

// -----

func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{stands in a function without a 'topology'; give it that attribute, with a mesh}}
  %b = mpmd.broadcast %a : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
// expected-error @below {{has an mpmd.assignment of 'f' to "m3", which is no mesh of its topology}}
func.func @main() attributes {topology = #topology, mpmd.assignment = {f = "m3"}} {
  return
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!t = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
// Two fragments do not agree in which memory the argument is.
// expected-error @below {{Memory kind mismatch of argument 0: }}
func.func @main(%a: !t) -> (!t, !t) attributes {topology = #topology} {
  // expected-note @below {{it is used here}}
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) {arg_attrs = [{mhlo.memory_kind = "pinned_host"}]}
      (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!t) -> !t
  %1 = mpmd.fragment<mesh="m1", origin=["g"]> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!t) -> !t
  return %0, %1 : !t, !t
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!t = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
func.func @main(%a: !t) -> (!t {mhlo.memory_kind = "device"}) attributes {topology = #topology} {
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) {res_attrs = [{mhlo.memory_kind = "pinned_host"}]}
      (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!t) -> !t
  // expected-error @below {{Memory kind mismatch of result 0: "device" vs "pinned_host" where it is made}}
  return %0 : !t
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> attributes {topology = #topology, mpmd.assignment = {f = "m1", g = "m2"}} {
  // expected-note @below {{this is that work}}
  %f = mpmd.named_computation<"f"> (%a) (%x: tensor<4xf32>) {
    // expected-error @below {{is on mesh 'm2', and stands in work of mesh 'm1'}}
    %0 = mpmd.named_tensor %x name="g" : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %f : tensor<4xf32>
}
