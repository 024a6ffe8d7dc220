// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s | mgpu-opt | FileCheck %s
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt | FileCheck %s

#topology = #mpmd.topology<<"left": <["x"=2, "y"=4]>>, <"right": <["z"=3]>>, <"one": <[], device_ids=[5]>>>
!left = !mpmd.mesh_tensor<"left", tensor<12x16xf32>>
!rows = !mpmd.mesh_tensor<"left", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {?}]>>
!host = !mpmd.mesh_tensor<"left", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {"y":(1)2, ?}p2], replicated={"y":(2)2}>, memory_kind="pinned_host">
!right = !mpmd.mesh_tensor<"right", tensor<12x16xf32>, memory_kind="device">
!one = !mpmd.mesh_tensor<"one", tensor<12x16xf32>>

// CHECK-LABEL: func.func @marks(
// CHECK-SAME: mpmd.src_set = #mpmd.meshes_with_origins<"left">
func.func @marks(%a: tensor<12x16xf32> {mpmd.src_set = #mpmd.meshes_with_origins<"left">}) {
  // CHECK: %[[N:.*]] = mpmd.named_computation<"layer"(1)> (%{{.*}}, %{{.*}}) {sdy.note = 1 : i64} (%[[X:.*]]: tensor<12x16xf32>, %{{.*}}: tensor<12x16xf32>) {
  // CHECK-NEXT: mpmd.return %[[X]] : tensor<12x16xf32>
  // CHECK-NEXT: } : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  %0 = mpmd.named_computation<"layer"(1)> (%a, %a) {sdy.note = 1 : i64} (%x: tensor<12x16xf32>, %y: tensor<12x16xf32>) {
    mpmd.return %x : tensor<12x16xf32>
  } : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  // CHECK: mpmd.named_computation<"nothing"> () () {
  // CHECK-NEXT: mpmd.return
  // CHECK-NEXT: } : () -> ()
  mpmd.named_computation<"nothing"> () () {
  } : () -> ()
  // CHECK: mpmd.named_computation<"order"> (%{{.*}}) (%{{.*}}: !stablehlo.token) {
  %t = stablehlo.create_token : !stablehlo.token
  %t2 = mpmd.named_computation<"order"> (%t) (%x: !stablehlo.token) {
    mpmd.return %x : !stablehlo.token
  } : (!stablehlo.token) -> !stablehlo.token
  // CHECK: mpmd.named_tensor %[[N]] name="weights" {note} : tensor<12x16xf32>
  %1 = mpmd.named_tensor %0 name="weights" {note} : tensor<12x16xf32>
  // CHECK: mpmd.broadcast {mpmd.use_set = #mpmd.meshes_with_origins<"left"["layer", "weights"], "right">} %{{.*}} : tensor<12x16xf32>
  %2 = mpmd.broadcast {mpmd.use_set = #mpmd.meshes_with_origins<"left"["layer", "weights"], "right">} %1 : tensor<12x16xf32>
  // CHECK: mpmd.reduce<add> %{{.*}}, %{{.*}} : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  %3 = mpmd.reduce<add> %1, %2 : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  // CHECK: mpmd.reduce<none> {note} %{{.*}} : (tensor<12x16xf32>) -> tensor<12x16xf32>
  %4 = mpmd.reduce<none> {note} %1 : (tensor<12x16xf32>) -> tensor<12x16xf32>
  // CHECK: mpmd.reduce<max>
  %5 = mpmd.reduce<max> %1, %2 : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  // CHECK: mpmd.reduce<min>
  %6 = mpmd.reduce<min> %1, %2 : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  // CHECK: mpmd.reduce<mul>
  %7 = mpmd.reduce<mul> %1, %2 : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  // CHECK: mpmd.reduce<or>
  %8 = mpmd.reduce<or> %1, %2 : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  // CHECK: mpmd.reduce<and>
  %9 = mpmd.reduce<and> %1, %2 : (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x16xf32>
  return
}

// CHECK-LABEL: func.func @moves(
// CHECK-SAME: !mpmd.mesh_tensor<"left", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {"y":(1)2, ?}p2], replicated={"y":(2)2}>, memory_kind="pinned_host">
// CHECK-SAME: topology = #mpmd.topology<<"left" : <["x"=2, "y"=4]>>, <"right" : <["z"=3]>>, <"one" : <[], device_ids=[5]>>>
func.func @moves(%a: tensor<12x16xf32>, %h: !host {sdy.sharding = #sdy.sharding<mesh<["x"=2]>, [{"x"}, {}]>}) attributes {topology = #topology} {
  // CHECK: mpmd.assign %{{.*}} : (tensor<12x16xf32>) -> !mpmd.mesh_tensor<"left", tensor<12x16xf32>>
  %0 = mpmd.assign %a : (tensor<12x16xf32>) -> !left
  // CHECK: mpmd.assign {origin = "layer"} %{{.*}} : (tensor<12x16xf32>) -> !mpmd.mesh_tensor<"one", tensor<12x16xf32>>
  %1 = mpmd.assign {origin = "layer"} %a : (tensor<12x16xf32>) -> !one
  // CHECK: mpmd.unassign {origin = "layer"} %{{.*}} : (!mpmd.mesh_tensor<"left", tensor<12x16xf32>>) -> tensor<12x16xf32>
  %2 = mpmd.unassign {origin = "layer"} %0 : (!left) -> tensor<12x16xf32>
  // CHECK: mpmd.transfer {note} %{{.*}} : (!mpmd.mesh_tensor<"left", tensor<12x16xf32>>) -> !mpmd.mesh_tensor<"right", tensor<12x16xf32>, memory_kind="device">
  %3 = mpmd.transfer {note} %0 : (!left) -> !right
  // CHECK: mpmd.transfer %{{.*}} : (!mpmd.mesh_tensor<"left", {{.*}}, memory_kind="pinned_host">) -> !mpmd.mesh_tensor<"left", {{.*}}>
  %4 = mpmd.transfer %h : (!host) -> !rows
  return
}

// CHECK-LABEL: func.func @fragments(
func.func @fragments(%a: !left, %r: !rows) -> !rows attributes {topology = #topology} {
  // CHECK: %[[F:.*]]:2 = mpmd.fragment<mesh="left", origin=["f", "g"(1)], stage=3, in_shardings=[<@mesh, [{"x"}, {?}]>, <@mesh, [{}, {}]>], out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"x"}, {}]>]> (%{{.*}}, %{{.*}}) {call_counter = 0 : ui32, remat, reserved_hbm_bytes = 256 : i64} (%[[X:.*]]: tensor<12x16xf32>, %[[Y:.*]]: tensor<12x16xf32>) {
  // CHECK-NEXT: mpmd.return %[[Y]], %[[X]] : tensor<12x16xf32>, tensor<12x16xf32>
  // CHECK-NEXT: } : (!mpmd.mesh_tensor<"left", tensor<12x16xf32>>, !mpmd.mesh_tensor<"left", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {?}]>>) -> (!mpmd.mesh_tensor<"left", tensor<12x16xf32>>, !mpmd.mesh_tensor<"left", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {?}]>>)
  %0:2 = mpmd.fragment<mesh="left", origin=["f", "g"(1)], stage=3, in_shardings=[<@mesh, [{"x"}, {?}]>, <@mesh, [{}, {}]>], out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{"x"}, {}]>]>
      (%a, %r) {call_counter = 0 : ui32, remat, reserved_hbm_bytes = 256 : i64} (%x: tensor<12x16xf32>, %y: tensor<12x16xf32>) {
    mpmd.return %y, %x : tensor<12x16xf32>, tensor<12x16xf32>
  } : (!left, !rows) -> (!left, !rows)
  // CHECK: mpmd.fragment<mesh="left", origin=[], out_shardings=[<@mesh, [{}, {}]>]> (%[[F]]#0)
  %1 = mpmd.fragment<mesh="left", origin=[], out_shardings=[<@mesh, [{}, {}]>]> (%0#0) (%x: tensor<12x16xf32>) {
    mpmd.return %x : tensor<12x16xf32>
  } : (!left) -> !left
  // CHECK: mpmd.fragment<mesh="right", origin=["nothing"]> () {mpmd.inferred_by = ["pass"]} () {
  // CHECK-NEXT: mpmd.return
  // CHECK-NEXT: } : () -> ()
  mpmd.fragment<mesh="right", origin=["nothing"]> () {mpmd.inferred_by = ["pass"]} () {
  } : () -> ()
  // CHECK: mpmd.fragment_call<mesh="left", origin=["f"(1), "g"]> @body(%[[F]]#0, %[[F]]#1) {remat} : (!mpmd.mesh_tensor<"left", tensor<12x16xf32>>, !mpmd.mesh_tensor<"left", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {?}]>>) -> !mpmd.mesh_tensor<"left", tensor<12x16xf32>, sharding=<@mesh, [{"x"}, {?}]>>
  %2 = mpmd.fragment_call<mesh="left", origin=["f"(1), "g"]> @body(%0#0, %0#1) {remat} : (!left, !rows) -> !rows
  // CHECK: mpmd.fragment_call<mesh="right", origin=[]> @nothing() : () -> ()
  mpmd.fragment_call<mesh="right", origin=[]> @nothing() : () -> ()
  return %2 : !rows
}
// CHECK: mesh_shape = #sdy.mesh<["x"=2, "y"=4]>
func.func @body(%x: tensor<12x16xf32>, %y: tensor<12x16xf32>) -> tensor<12x16xf32> attributes {mesh_shape = #sdy.mesh<["x"=2, "y"=4]>, reserved_hbm_bytes = 1 : i64} {
  return %y : tensor<12x16xf32>
}
func.func @nothing() attributes {mesh_shape = #sdy.mesh<["z"=3]>} {
  return
}

// CHECK-LABEL: func.func public @loops(
func.func public @loops(%a: tensor<12x16xf32>, %r: !rows) attributes {topology = #topology} {
  // CHECK: mpmd.call @step(%{{.*}}, %{{.*}}) {call_counter = 3 : ui32} : (tensor<12x16xf32>, !mpmd.mesh_tensor<{{.*}}>) -> (tensor<12x16xf32>, !mpmd.mesh_tensor<{{.*}}>)
  %0:2 = mpmd.call @step(%a, %r) {call_counter = 3 : ui32} : (tensor<12x16xf32>, !rows) -> (tensor<12x16xf32>, !rows)
  // CHECK: mpmd.for (%{{.*}}, %{{.*}}) {arg_attrs = [{}, {}, {}], iterations = 12 : ui32, unroll_factor = 3 : ui32} (%[[X:.*]]: tensor<12x16xf32>, %{{.*}}: tensor<12x16xf32>, %index: tensor<ui32>) {
  // CHECK: mpmd.return
  // CHECK: } : tensor<12x16xf32>, tensor<12x16xf32>
  %1:2 = mpmd.for (%a, %a) {arg_attrs = [{}, {}, {}], iterations = 12 : ui32, unroll_factor = 3 : ui32} (%x: tensor<12x16xf32>, %y: tensor<12x16xf32>, %index: tensor<ui32>) {
    %on = mpmd.assign %x : (tensor<12x16xf32>) -> !left
    %off = mpmd.unassign %on : (!left) -> tensor<12x16xf32>
    mpmd.return %off, %x : tensor<12x16xf32>, tensor<12x16xf32>
  } : tensor<12x16xf32>, tensor<12x16xf32>
  // CHECK: mpmd.for (%{{.*}}) {iterations = 2 : ui32} (%{{.*}}: !mpmd.mesh_tensor<{{.*}}>, %index: !mpmd.mesh_tensor<"left", tensor<i32>>) {
  %2 = mpmd.for (%r) {iterations = 2 : ui32} (%x: !rows, %index: !mpmd.mesh_tensor<"left", tensor<i32>>) {
    mpmd.return %x : !rows
  } : !rows
  // CHECK: mpmd.for () {iterations = 1 : ui32} (%index: tensor<ui32>) {
  // CHECK-NEXT: mpmd.return
  // CHECK-NEXT: }{{$}}
  mpmd.for () {iterations = 1 : ui32} (%index: tensor<ui32>) {
  }
  return
}
func.func private @step(%a: tensor<12x16xf32>, %r: !rows) -> (tensor<12x16xf32>, !rows) attributes {topology = #topology} {
  return %a, %r : tensor<12x16xf32>, !rows
}

// CHECK-LABEL: func.func private @attributes
// CHECK-SAME: mesh = #mpmd.named_mesh<"left" : <["x"=2]>>
// CHECK-SAME: origin = #mpmd.origin<"why">
// CHECK-SAME: reduction = #mpmd.reduction<or>
// CHECK-SAME: set = #mpmd.meshes_with_origins<>
// CHECK-SAME: user = #mpmd.user_origin<"f"(2)>
// CHECK-SAME: with = #mpmd.mesh_with_origins<"left"["a", "b"]>
// CHECK-SAME: work = [#mpmd.work<weights, microbatch = 3, stage = 0>, #mpmd.work<backward, microbatch = 3, stage = 1, half = 2>]
func.func private @attributes() attributes {
  mesh = #mpmd.named_mesh<"left" : <["x"=2]>>, origin = #mpmd.origin<"why">, reduction = #mpmd.reduction<or>,
  set = #mpmd.meshes_with_origins<>, user = #mpmd.user_origin<"f"(2)>, with = #mpmd.mesh_with_origins<"left"["a","b"]>,
  work = [#mpmd.work<weights, microbatch = 3, stage = 0>, #mpmd.work<backward, microbatch = 3, stage = 1, half = 2>]}
