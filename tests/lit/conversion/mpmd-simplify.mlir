// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-simplify --split-input-file | FileCheck %s

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<4xf32>>

// What nobody uses goes, and what is there twice is there once.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: !mpmd.mesh_tensor<"m1", tensor<4xf32>>, %{{.*}}: !mpmd.mesh_tensor
func.func @main(%a: !m1, %b: !m1) -> (!m2, !m2) attributes {topology = #topology} {
  // CHECK-NEXT: %[[F:.*]] = mpmd.fragment<mesh="m1", origin=["f"]> (%[[A]]) (%[[X:.*]]: tensor<4xf32>)
  // CHECK-NEXT: %[[S:.*]] = stablehlo.add %[[X]], %[[X]]
  // CHECK-NEXT: mpmd.return %[[S]] : tensor<4xf32>
  %f:3 = mpmd.fragment<mesh="m1", origin=["f"]> (%a, %a, %b)
      (%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    %1 = stablehlo.negate %z : tensor<4xf32>
    mpmd.return %0, %0, %1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  } : (!m1, !m1, !m1) -> (!m1, !m1, !m1)
  %dead = mpmd.fragment<mesh="m1", origin=["g"]> (%f#0) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  // CHECK: %[[T:.*]] = mpmd.transfer %[[F]]
  // CHECK-NEXT: return %[[T]], %[[T]]
  %t = mpmd.transfer %f#0 : (!m1) -> !m2
  %u = mpmd.transfer %f#1 : (!m1) -> !m2
  %back = mpmd.transfer %u : (!m2) -> !m1
  %again = mpmd.transfer %back : (!m1) -> !m2
  return %t, %again : !m2, !m2
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
!h = !mpmd.mesh_tensor<"m1", tensor<4xf32>, memory_kind="pinned_host">

// Work without a name becomes a part of what it takes something of. By way of
// the hosts' memory a tensor goes if the program says so.
// CHECK-LABEL: func.func @main
func.func @main(%a: !m1) -> !m1 attributes {topology = #topology} {
  // CHECK: %[[F:.*]] = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%{{.*}}) {call_counter = 2 : ui32}
  // CHECK-NEXT: %[[N:.*]] = stablehlo.negate
  // CHECK-NEXT: %[[E:.*]] = stablehlo.exponential %[[N]]
  // CHECK-NEXT: mpmd.return %[[E]]
  %f = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%a) {call_counter = 2 : ui32} (%x: tensor<4xf32>) {
    %0 = stablehlo.negate %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  %g = mpmd.fragment<mesh="m1", origin=[]> (%f) (%x: tensor<4xf32>) {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  // CHECK: %[[T:.*]] = mpmd.transfer %[[F]]
  // CHECK: %[[U:.*]] = mpmd.transfer %[[T]]
  // CHECK: return %[[U]]
  %t = mpmd.transfer %g : (!m1) -> !h
  %u = mpmd.transfer %t : (!h) -> !m1
  return %u : !m1
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<4xf32>>

// What another mesh gives would make the fragment before wait: here the one
// behind takes the work.
// CHECK-LABEL: func.func @main
func.func @main(%a: !m1, %b: !m2) -> !m1 attributes {topology = #topology} {
  // CHECK: %[[F:.*]] = mpmd.fragment<mesh="m1", origin=["f"]>
  %f = mpmd.fragment<mesh="m1", origin=["f"]> (%a) (%x: tensor<4xf32>) {
    %0 = stablehlo.negate %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  // CHECK: %[[T:.*]] = mpmd.transfer
  %t = mpmd.transfer %b : (!m2) -> !m1
  // CHECK: mpmd.fragment<mesh="m1", origin=["g"]> (%[[F]], %[[T]])
  // CHECK-NEXT: stablehlo.add
  // CHECK-NEXT: stablehlo.exponential
  %s = mpmd.fragment<mesh="m1", origin=[]> (%f, %t) (%x: tensor<4xf32>, %y: tensor<4xf32>) {
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1, !m1) -> !m1
  %g = mpmd.fragment<mesh="m1", origin=["g"]> (%s) (%x: tensor<4xf32>) {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  return %g : !m1
}
