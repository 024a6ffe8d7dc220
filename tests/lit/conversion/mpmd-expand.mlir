// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-expand --split-input-file | FileCheck %s

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<ui32>>

// CHECK-LABEL: func.func @main
func.func @main(%a: tensor<ui32>, %b: !m1) -> (tensor<ui32>, !m1) attributes {topology = #topology} {
  // CHECK: %[[I0:.*]] = stablehlo.constant dense<0>
  // CHECK: %[[S0:.*]] = stablehlo.add %arg0, %[[I0]]
  // CHECK: %[[I1:.*]] = stablehlo.constant dense<1>
  // CHECK: %[[S1:.*]] = stablehlo.add %[[S0]], %[[I1]]
  // CHECK-NOT: mpmd.for
  %l = mpmd.for (%a) {iterations = 2 : ui32} (%x: tensor<ui32>, %index: tensor<ui32>) {
    %0 = stablehlo.add %x, %index : tensor<ui32>
    mpmd.return %0 : tensor<ui32>
  } : tensor<ui32>
  // CHECK: %[[F:.*]] = mpmd.fragment<mesh="m1", origin=["f"]> (%arg1) (%[[X:.*]]: tensor<ui32>)
  // CHECK-NEXT: stablehlo.not %[[X]]
  // CHECK-NEXT: mpmd.return
  %f = mpmd.fragment_call<mesh="m1", origin=["f"]> @f(%b) : (!m1) -> !m1
  // CHECK: return %[[S1]], %[[F]]
  // CHECK-NOT: func.func
  return %l, %f : tensor<ui32>, !m1
}

func.func private @f(%x: tensor<ui32>) -> tensor<ui32> attributes {mesh_shape = #sdy.mesh<["x"=2]>} {
  %0 = stablehlo.not %x : tensor<ui32>
  return %0 : tensor<ui32>
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<ui32>>

// A round is a microbatch; of loops in each other, one of the outermost.
// CHECK-LABEL: func.func @main
// CHECK: origin=["g"]> (%arg0) {call_counter = 0 : ui32}
// CHECK: origin=["g"]> {{.*}} {call_counter = 0 : ui32}
// CHECK: origin=["g"]> {{.*}} {call_counter = 1 : ui32}
// CHECK: origin=["g"]> {{.*}} {call_counter = 1 : ui32}
// CHECK-NOT: origin=["g"]
func.func @main(%a: !m1) -> !m1 attributes {topology = #topology} {
  %0 = mpmd.for (%a) {iterations = 2 : ui32} (%x: !m1, %i: tensor<ui32>) {
    %1 = mpmd.for (%x) {iterations = 2 : ui32} (%y: !m1, %j: tensor<ui32>) {
      %2 = mpmd.fragment<mesh="m1", origin=["g"]> (%y) (%z: tensor<ui32>) {
        mpmd.return %z : tensor<ui32>
      } : (!m1) -> !m1
      mpmd.return %2 : !m1
    } : !m1
    mpmd.return %1 : !m1
  } : !m1
  return %0 : !m1
}
