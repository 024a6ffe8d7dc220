// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-expand --mpmd-flatten | FileCheck %s

sdy.mesh @m1 = <["x"=2]>
#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{"x"}]>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<4xf32>>
!plain = !mpmd.mesh_tensor<"m1", tensor<4xf32>>

// CHECK: func.func @main(%[[A:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
func.func @main(%a: !m1, %b: tensor<4xf32>) -> (!m2, tensor<4xf32>) attributes {topology = #topology} {
  // CHECK-NEXT: %[[N:.*]] = stablehlo.negate %[[A]] : tensor<4xf32>
  %f = mpmd.fragment<mesh="m1", origin=["f"]> (%a) (%x: tensor<4xf32>) {
    %0 = stablehlo.negate %x {sdy.sharding = #sdy.sharding_per_value<[<@m1, [{"x"}]>]>} : tensor<4xf32>
    %1 = stablehlo.custom_call @annotate_device_placement(%0) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = sdy.sharding_constraint %1 <@m1, [{"x"}]> : tensor<4xf32>
    sdy.sharding_group %2 group_id=0 : tensor<4xf32>
    mpmd.return %2 : tensor<4xf32>
  } : (!m1) -> !plain
  %t = mpmd.transfer %f : (!plain) -> !m2
  %u = mpmd.unassign %f : (!plain) -> tensor<4xf32>
  // CHECK-NEXT: %[[E:.*]] = stablehlo.exponential %[[B]]
  %g = mpmd.named_computation<"g"> (%b) (%x: tensor<4xf32>) {
    %0 = mpmd.named_computation<"h"> (%x) (%y: tensor<4xf32>) {
      %1 = stablehlo.exponential %y : tensor<4xf32>
      mpmd.return %1 : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %n = mpmd.named_tensor %g name="n" : tensor<4xf32>
  // CHECK-NEXT: %[[M:.*]] = stablehlo.maximum %[[E]], %[[N]]
  %r = mpmd.reduce<max> %n, %u : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: return %[[N]], %[[M]]
  return %t, %r : !m2, tensor<4xf32>
}
