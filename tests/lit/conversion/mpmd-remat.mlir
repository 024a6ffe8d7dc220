// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-remat | FileCheck %s

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>

// Backward work of the first microbatch computes its forward work again; that
// of the second one follows at once, and takes what is there.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: !mpmd.mesh_tensor<"m1", tensor<4xf32>>, %[[B:.*]]: !mpmd
func.func @main(%a: !m1, %b: !m1) -> (!m1, !m1, !m1) attributes {topology = #topology} {
  // CHECK: %[[F:.*]] = mpmd.fragment<mesh="m1", origin=["f"]> (%[[A]]) {call_counter = 0 : ui32} (
  %f = mpmd.fragment<mesh="m1", origin=["f"]> (%a) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    %0 = stablehlo.negate %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  // CHECK: %[[G:.*]] = mpmd.fragment<mesh="m1", origin=["f"]> (%[[B]]) {call_counter = 1 : ui32} (
  %g = mpmd.fragment<mesh="m1", origin=["f"]> (%b) {call_counter = 1 : ui32} (%x: tensor<4xf32>) {
    %0 = stablehlo.negate %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  // CHECK: mpmd.fragment<mesh="m1", origin=["f"(1)]> (%[[G]])
  %q = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%g) {call_counter = 1 : ui32} (%x: tensor<4xf32>) {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  // CHECK: %[[R:.*]] = mpmd.fragment<mesh="m1", origin=["f"]> (%[[A]]) {call_counter = 0 : ui32, remat} (
  // CHECK-NEXT: stablehlo.negate
  // CHECK: mpmd.fragment<mesh="m1", origin=["f"(1)]> (%[[R]])
  %p = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%f) {call_counter = 0 : ui32} (%x: tensor<4xf32>) {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (!m1) -> !m1
  // CHECK: return %[[F]]
  return %f, %p, %q : !m1, !m1, !m1
}
