// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-expand | FileCheck %s

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
