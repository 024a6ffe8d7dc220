// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a call inlines keeps the number of the call. A fragment's function is
// called with other types, and stays.
// RUN: mgpu-opt --inline %s | FileCheck %s

#topology = #mpmd.topology<<"m" : <["x"=2]>>>
!t = !mpmd.mesh_tensor<"m", tensor<4xf32>>

// CHECK-LABEL: func.func @main
// CHECK-NOT: mpmd.call
// CHECK: %[[A:.*]] = mpmd.fragment<mesh="m", origin=["f"]> (%arg0) {call_counter = 0 : ui32}
// CHECK: %[[B:.*]] = mpmd.fragment_call<mesh="m", origin=[]> @body(%[[A]]) {call_counter = 0 : ui32}
// CHECK: %[[C:.*]] = mpmd.fragment<mesh="m", origin=["f"]> (%[[B]]) {call_counter = 1 : ui32}
// CHECK: %[[D:.*]] = mpmd.fragment_call<mesh="m", origin=[]> @body(%[[C]]) {call_counter = 1 : ui32}
// CHECK: %[[E:.*]] = mpmd.fragment<mesh="m", origin=["f"]> (%[[D]]) (%
// CHECK: %[[F:.*]] = mpmd.fragment_call<mesh="m", origin=[]> @body(%[[E]]) :
// CHECK: return %[[F]]
func.func @main(%a: !t) -> !t attributes {topology = #topology} {
  %0 = mpmd.call @f(%a) {call_counter = 0 : ui32} : (!t) -> !t
  %1 = mpmd.call @f(%0) {call_counter = 1 : ui32} : (!t) -> !t
  %2 = mpmd.call @f(%1) : (!t) -> !t
  return %2 : !t
}
func.func private @f(%a: !t) -> !t attributes {topology = #topology} {
  %0 = mpmd.fragment<mesh="m", origin=["f"]> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!t) -> !t
  %1 = mpmd.fragment_call<mesh="m", origin=[]> @body(%0) : (!t) -> !t
  return %1 : !t
}
func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mesh_shape = #sdy.mesh<["x"=2]>} {
  return %x : tensor<4xf32>
}
