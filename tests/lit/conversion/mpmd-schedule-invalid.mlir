// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-schedule=schedule=1f1b --split-input-file --verify-diagnostics
// RUN: not mgpu-opt %s --mpmd-schedule=schedule=sideways --split-input-file 2>&1 | FileCheck %s

// CHECK: cannot take schedule sideways; there are gpipe

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>

// The backward work of the first microbatch needs all forward works.
func.func @main(%a: !m1, %b: !m1) -> (!m1, !m1) attributes {topology = #topology} {
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  // expected-note @+1 {{this is the latter}}
  %1 = mpmd.fragment<mesh="m1", origin=["f"]> (%b) {call_counter = 1 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  %all = mpmd.fragment<mesh="m1", origin=[]> (%0, %1) (%x: tensor<4xf32>, %y: tensor<4xf32>) {
    %sum = stablehlo.add %x, %y : tensor<4xf32>
    mpmd.return %sum : tensor<4xf32>
  } : (!m1, !m1) -> !m1
  // expected-error @+1 {{the schedule puts the backward work of microbatch 0 on mesh 'm1' before the forward work of microbatch 1 on mesh 'm1', of which it needs a result}}
  %2 = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%all) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  %3 = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%all) {call_counter = 1 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  return %2, %3 : !m1, !m1
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>

// Microbatch 0 needs what is made of microbatch 1.
func.func @main(%a: !m1, %b: !m1) -> (!m1, !m1) attributes {topology = #topology} {
  // expected-note @+1 {{this is the latter}}
  %1 = mpmd.fragment<mesh="m1", origin=["f"]> (%b) {call_counter = 1 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  // expected-error @+1 {{the schedule puts the forward work of microbatch 0 on mesh 'm1' before the forward work of microbatch 1 on mesh 'm1', of which it needs a result}}
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%1) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  return %0, %1 : !m1, !m1
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<4xf32>>

// expected-error @+1 {{cannot take schedule 1f1b: it is for one stage a mesh, and a mesh has 2; interleaved and circular take more}}
func.func @main(%a: !m1) -> !m1 attributes {topology = #topology} {
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  %1 = mpmd.transfer %0 : (!m1) -> !m2
  %2 = mpmd.fragment<mesh="m2", origin=["g"]> (%1) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m2) -> !m2
  %3 = mpmd.transfer %2 : (!m2) -> !m1
  // expected-warning @+1 {{Detected backward dependency: forward work comes back to mesh 'm1', which then has 2 stages, and another mesh has 1}}
  %4 = mpmd.fragment<mesh="m1", origin=["h"]> (%3) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  return %4 : !m1
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>

// expected-error @+1 {{has no microbatches for schedule 1f1b}}
func.func @main(%a: !m1) -> !m1 attributes {topology = #topology} {
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  return %0 : !m1
}
