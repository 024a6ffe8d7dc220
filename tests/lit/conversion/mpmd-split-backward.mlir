// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-split-backward | FileCheck %s
// RUN: mgpu-opt %s --mpmd-split-backward --mpmd-schedule=schedule=zb-h1 | FileCheck %s --check-prefix=ORDER

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{"x"}, {}]>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<4x4xf32>, sharding=<@m2, [{"x"}, {}]>>
!w2 = !mpmd.mesh_tensor<"m2", tensor<4x4xf32>>

// ORDER: origin=["f"]>
// ORDER: origin=["g"]>
// ORDER: split_keep_transferred
// ORDER: mpmd.transfer
// ORDER: split_drop_transferred

// What m1 waits for comes first; the constant is in both parts. The sum of the
// gradients takes the product that both need, which is shared as d is.
// CHECK-LABEL: func.func @main
func.func @main(%a: !m1, %d: !m2, %w: !w2, %g: !w2) -> (!m1, !w2) attributes {topology = #topology} {
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) {call_counter = 0 : ui32} (%x: tensor<4x4xf32>) {
    mpmd.return %x : tensor<4x4xf32>
  } : (!m1) -> !m1
  %1 = mpmd.transfer %0 : (!m1) -> !m2
  %2 = mpmd.fragment<mesh="m2", origin=["g"]> (%1) {call_counter = 0 : ui32} (%x: tensor<4x4xf32>) {
    mpmd.return %x : tensor<4x4xf32>
  } : (!m2) -> !m2
  // CHECK: %[[B:.*]]:2 = mpmd.fragment<mesh="m2", origin=["g"(1)]> (%{{.*}}, %arg2)
  // CHECK-SAME: {call_counter = 0 : ui32, split_keep_transferred}
  // CHECK: stablehlo.constant
  // CHECK: %[[D:.*]] = stablehlo.multiply
  // CHECK: %[[DX:.*]] = stablehlo.dot %[[D]]
  // CHECK-NOT: stablehlo
  // CHECK: mpmd.return %[[DX]], %[[D]]
  // CHECK-NEXT: -> (!mpmd.mesh_tensor<"m2", tensor<4x4xf32>, sharding=<@m2, [{"x"}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<4x4xf32>, sharding=<@m2, [{"x"}, {}]>>)
  // CHECK: %[[W:.*]] = mpmd.fragment<mesh="m2", origin=["g"(1)]> (%{{.*}}, %[[B]]#1, %arg3) {call_counter = 0 : ui32, split_drop_transferred}
  // CHECK: stablehlo.constant
  // CHECK: stablehlo.dot
  // CHECK: stablehlo.add
  // CHECK: mpmd.transfer %[[B]]#0
  %3:2 = mpmd.fragment<mesh="m2", origin=["g"(1)]> (%2, %d, %w, %g) {call_counter = 0 : ui32}
      (%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %u: tensor<4x4xf32>, %s: tensor<4x4xf32>) {
    %two = stablehlo.constant dense<2.0> : tensor<4x4xf32>
    %dy = stablehlo.multiply %y, %two : tensor<4x4xf32>
    %dx = stablehlo.dot %dy, %u : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %dw = stablehlo.dot %x, %dy : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %half = stablehlo.multiply %dw, %two : tensor<4x4xf32>
    %sum = stablehlo.add %s, %half : tensor<4x4xf32>
    mpmd.return %dx, %sum : tensor<4x4xf32>, tensor<4x4xf32>
  } : (!m2, !m2, !w2, !w2) -> (!m2, !w2)
  %4 = mpmd.transfer %3#0 : (!m2) -> !m1
  // The first mesh gives nothing on, and is not split.
  // CHECK: origin=["f"(1)]> (%{{.*}}) {call_counter = 0 : ui32} (
  %5 = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%4) {call_counter = 0 : ui32} (%x: tensor<4x4xf32>) {
    mpmd.return %x : tensor<4x4xf32>
  } : (!m1) -> !m1
  // CHECK: return %{{.*}}, %[[W]]
  return %5, %3#1 : !m1, !w2
}
