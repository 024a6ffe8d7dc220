// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s | mgpu-opt | FileCheck %s
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt | FileCheck %s

// CHECK: sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @mesh = <["x"=2, "y"=4]>
// CHECK: sdy.mesh @moved = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>
sdy.mesh @moved = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>
// CHECK: sdy.mesh @empty = <[]>
sdy.mesh @empty = <[]>
// CHECK: sdy.mesh @one = <[], device_ids=[3]>
sdy.mesh @one = <[], device_ids=[3]>

// CHECK: @arguments(%{{.*}}: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}, {?}]>}
// CHECK-SAME: %{{.*}}: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {}], replicated={"y":(1)2}, unreduced=max{"y":(2)2}>}
// CHECK-SAME: -> (tensor<8x8xf32> {jax.result_info = "", sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}, {}]>})
func.func @arguments(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}, {?}]>},
                     %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {}], replicated={"y":(1)2}, unreduced=max{"y":(2)2}>})
    -> (tensor<8x8xf32> {jax.result_info = "", sdy.sharding = #sdy.sharding<mesh<["a"=2]>, [{"a"}, {}]>}) {
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  %0 = stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[#sdy.sharding<@mesh, [{"x"}, {}]>]>} : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @computations
func.func @computations(%a: tensor<8x8xf32>) {
  // CHECK: sdy.manual_computation(%{{.*}}) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%[[X:.*]]: tensor<4x8xf32>) {
  // CHECK: sdy.return %{{.*}} : tensor<8x2xf32>
  // CHECK: } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {"y"}]>] manual_axes={"x", "y"} (%x: tensor<4x8xf32>) {
    %1 = stablehlo.constant dense<1.0> : tensor<8x2xf32>
    sdy.return %1 : tensor<8x2xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  // CHECK: sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={} () {
  %2 = sdy.manual_computation() in_shardings=[] out_shardings=[<@mesh, []>] manual_axes={} () {
    // CHECK: sdy.constant dense<1.000000e+00> : tensor<f32>
    %1 = sdy.constant dense<1.0> : tensor<f32>
    sdy.return %1 : tensor<f32>
  } : () -> tensor<f32>
  // CHECK: sdy.named_computation<"f">(%{{.*}}) in_shardings=[<@mesh, [{"x"}, {}]>] (%{{.*}}: tensor<8x8xf32>) {
  %3 = sdy.named_computation<"f">(%a) in_shardings=[<@mesh, [{"x"}, {}]>] (%x: tensor<8x8xf32>) {
    sdy.return %x : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

// CHECK-LABEL: func.func @changes
func.func @changes(%a: tensor<8x8xf32>) {
  // CHECK: sdy.sharding_constraint %{{.*}} <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  // CHECK: sdy.reshard %{{.*}} <@mesh, [{}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %a <@mesh, [{}, {}]> : tensor<8x8xf32>
  // CHECK: sdy.all_gather [{"x"}, {}] %{{.*}} out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %2 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  // CHECK: sdy.all_slice [{}, {"y":(1)2}] %{{.*}} out_sharding=<@mesh, [{}, {"y":(1)2}]> : tensor<8x8xf32>
  %3 = sdy.all_slice [{}, {"y":(1)2}] %a out_sharding=<@mesh, [{}, {"y":(1)2}]> : tensor<8x8xf32>
  // CHECK: sdy.all_reduce max {"x"} %{{.*}} out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %4 = sdy.all_reduce max {"x"} %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  // CHECK: sdy.all_reduce {"x"} %{{.*}} out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %5 = sdy.all_reduce {"x"} %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  // CHECK: sdy.reduce_scatter [{"x"}, {}] %{{.*}} out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %6 = sdy.reduce_scatter [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  // CHECK: sdy.all_to_all [{"x"}: 0->1] %{{.*}} out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %7 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  // CHECK: sdy.collective_permute %{{.*}} out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %8 = sdy.collective_permute %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  // CHECK: sdy.sharding_group %{{.*}} group_id=7 : tensor<8x8xf32>
  sdy.sharding_group %a group_id=7 : tensor<8x8xf32>
  // CHECK: sdy.propagation_barrier %{{.*}} allowed_direction=NONE : tensor<8x8xf32>
  %9 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<8x8xf32>
  // CHECK: sdy.propagation_barrier %{{.*}} allowed_direction=BACKWARD : tensor<8x8xf32>
  %10 = sdy.propagation_barrier %a allowed_direction=BACKWARD : tensor<8x8xf32>
  // CHECK: sdy.data_flow_edge %{{.*}} sharding=<@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
  %11 = sdy.data_flow_edge %a sharding=<@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
  // CHECK: sdy.data_flow_edge %{{.*}} : tensor<8x8xf32>
  %12 = sdy.data_flow_edge %11 : tensor<8x8xf32>
  // CHECK: sdy.func_data_flow_edge %{{.*}} : tensor<8x8xf32>
  %func_edge = sdy.func_data_flow_edge %12 : tensor<8x8xf32>
  return
}
