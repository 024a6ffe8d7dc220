// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mpmd-assign-meshes=assign=f=m1,g=m2,n=m2 --split-input-file | FileCheck %s

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>

// Named computations go to the meshes of their names. What has no name runs
// where its operands are; a constant where it is used.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: !mpmd.mesh_tensor<"m1", tensor<4xf32>>, %[[B:.*]]: !mpmd.mesh_tensor<"m2", tensor<4xf32>>)
// CHECK-SAME: -> !mpmd.mesh_tensor<"m2", tensor<4xf32>>
func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> attributes {topology = #topology} {
  // CHECK: %[[F:.*]] = mpmd.fragment<mesh="m1", origin=["f"]> (%[[A]])
  %f = mpmd.named_computation<"f"> (%a) (%x: tensor<4xf32>) {
    %0 = stablehlo.negate %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4xf32>
  %sum = stablehlo.add %f, %one : tensor<4xf32>
  // CHECK: %[[SUM:.*]] = mpmd.fragment<mesh="m1", origin=[]> (%[[F]])
  // CHECK-NEXT: stablehlo.constant
  // CHECK-NEXT: stablehlo.add
  // CHECK: %[[T:.*]] = mpmd.transfer %[[SUM]] : (!mpmd.mesh_tensor<"m1", tensor<4xf32>>) -> !mpmd.mesh_tensor<"m2", tensor<4xf32>>
  // CHECK: %[[G:.*]] = mpmd.fragment<mesh="m2", origin=["g"(1)]> (%[[T]], %[[B]])
  %g = mpmd.named_computation<"g"(1)> (%sum, %b) (%x: tensor<4xf32>, %y: tensor<4xf32>) {
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: return %[[G]]
  return %g : tensor<4xf32>
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<4xf32>>

// A reduction combines in the order of its operands; assign, unassign,
// broadcast and names compute nothing.
// CHECK-LABEL: func.func @main
func.func @main(%a: !m1, %b: !m2) -> (tensor<4xf32>, !m1) attributes {topology = #topology} {
  // CHECK: %[[T:.*]] = mpmd.transfer %arg0 : {{.*}}"m1"{{.*}} -> {{.*}}"m2"
  // CHECK: mpmd.fragment<mesh="m2", origin=[]> (%[[T]], %arg1) (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
  // CHECK-NEXT: stablehlo.maximum %[[X]], %[[Y]]
  // CHECK: return %{{.*}}, %arg0
  %x = mpmd.unassign %a : (!m1) -> tensor<4xf32>
  %y = mpmd.unassign %b : (!m2) -> tensor<4xf32>
  %max = mpmd.reduce<max> %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %all = mpmd.broadcast %max : tensor<4xf32>
  %named = mpmd.named_tensor %all name="n" : tensor<4xf32>
  %back = mpmd.assign %x : (tensor<4xf32>) -> !m1
  return %named, %back : tensor<4xf32>, !m1
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2, "y"=2]>>>
sdy.mesh @m2 = <["x"=2, "y"=2]>

// The function's attribute says meshes too. A computation without one runs
// where its operand is; arguments and results have the shardings and are in the
// memory that attributes say.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: !mpmd.mesh_tensor<"m2", tensor<4xf32>, sharding=<@m2, [{"x"}]>, memory_kind="pinned_host">
// CHECK-SAME: -> (!mpmd.mesh_tensor<"m2", tensor<4xf32>, sharding=<@m2, [{"y"}]>>
// CHECK-NOT: mpmd.assignment
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m2, [{"x"}]>, mhlo.memory_kind = "pinned_host"})
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m2, [{"y"}]>})
    attributes {topology = #topology, mpmd.assignment = {e = "m2"}} {
  // CHECK: %[[E:.*]] = mpmd.fragment<mesh="m2", origin=["e"]> (%[[A]])
  %e = mpmd.named_computation<"e"> (%a) (%x: tensor<4xf32>) {
    %0 = stablehlo.negate %x : tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[H:.*]] = mpmd.fragment<mesh="m2", origin=["h"]> (%[[E]])
  %h = mpmd.named_computation<"h"> (%e) (%x: tensor<4xf32>) {
    // CHECK-NOT: annotate_device_placement
    %0 = stablehlo.custom_call @annotate_device_placement(%x) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "device"}} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.exponential %0 : tensor<4xf32>
    mpmd.return %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: %[[T:.*]] = mpmd.transfer %[[H]]
  // CHECK: return %[[T]]
  return %h : tensor<4xf32>
}

// -----

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>

// What stands in a computation is a part of it; a group of shardings says no
// mesh.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[A:.*]]: !mpmd.mesh_tensor<"m1", tensor<4xf32>>)
// CHECK-NEXT: %[[F:.*]] = mpmd.fragment<mesh="m1", origin=["outer"]> (%[[A]]) (%[[X:.*]]: tensor<4xf32>) {
// CHECK-NEXT: %[[N:.*]] = stablehlo.negate %[[X]]
// CHECK-NEXT: mpmd.return %[[N]]
// CHECK: return %[[F]]
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32>
    attributes {topology = #topology, mpmd.assignment = {outer = "m1", inner = "m1"}} {
  sdy.sharding_group %a group_id=0 : tensor<4xf32>
  %e = mpmd.named_computation<"outer"> (%a) (%x: tensor<4xf32>) {
    %0 = mpmd.named_computation<"inner"> (%x) (%y: tensor<4xf32>) {
      %1 = mpmd.broadcast %y : tensor<4xf32>
      %2 = stablehlo.negate %1 : tensor<4xf32>
      %3 = mpmd.named_tensor %2 name="other" : tensor<4xf32>
      mpmd.return %3 : tensor<4xf32>
    } : (tensor<4xf32>) -> tensor<4xf32>
    mpmd.return %0 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %e : tensor<4xf32>
}
