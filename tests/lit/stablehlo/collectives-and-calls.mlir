// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s | mgpu-opt | FileCheck %s
// RUN: mgpu-opt --mlir-print-op-generic %s | mgpu-opt | FileCheck %s

// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<4x8xf32>, %y: tensor<4x8xi32>, %root: tensor<2xi32>) {
  // CHECK: "stablehlo.all_gather"(%{{.*}}, %{{.*}}) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{.*}}> : tensor<2x2xi64>, use_global_device_ids}>
  %0:2 = "stablehlo.all_gather"(%x, %y) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x16xf32>, tensor<4x16xi32>)
  // CHECK: "stablehlo.all_reduce"(%{{.*}}) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">, #stablehlo.axis_ref<name = "y", sub_axis_info = (1)2>]>}>
  %1 = "stablehlo.all_reduce"(%x) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">, <name = "y", sub_axis_info = (1)2>]>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "stablehlo.reduce_scatter"
  %2 = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<4x8xf32>) -> tensor<2x8xf32>
  // CHECK: "stablehlo.all_to_all"(%{{.*}}) <{concat_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [<name = "x", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>, axes = [#stablehlo.axis_ref<name = "x">]>, split_count = 2 : i64, split_dimension = 1 : i64}>
  %3 = "stablehlo.all_to_all"(%x) <{concat_dimension = 0 : i64, replica_groups = #stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = [<name = "x", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>, axes = [#stablehlo.axis_ref<name = "x">]>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK: "stablehlo.collective_permute"(%{{.*}}) <{source_target_pairs = dense<{{.*}}> : tensor<2x2xi64>}>
  %4 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "stablehlo.collective_broadcast"(%{{.*}}, %{{.*}}, %{{.*}}) <{has_dynamic_root, replica_groups = dense<{{.*}}> : tensor<1x2xi64>}>
  %5:2 = "stablehlo.collective_broadcast"(%x, %y, %root) <{has_dynamic_root, replica_groups = dense<[[2, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<2xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
  // CHECK: stablehlo.partition_id : tensor<ui32>
  %6 = stablehlo.partition_id : tensor<ui32>
  // CHECK: stablehlo.replica_id : tensor<ui32>
  %7 = stablehlo.replica_id : tensor<ui32>
  return
}

// CHECK-LABEL: func.func @calls
func.func @calls(%x: tensor<4xf32>) {
  // CHECK: stablehlo.custom_call @Sharding(%{{.*}}) {backend_config = "", mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.custom_call @check.expect_eq(%{{.*}}, %{{.*}}) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%x, %0) {has_side_effect = true} : (tensor<4xf32>, tensor<4xf32>) -> ()
  // CHECK: stablehlo.custom_call @k(%{{.*}}) {api_version = 4 : i32, backend_config = {a = 1 : i32}, operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]}
  %1 = stablehlo.custom_call @k(%x) {api_version = 4 : i32, backend_config = {a = 1 : i32}, operand_layouts = [dense<0> : tensor<1xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.composite "a.name" %{{.*}} {composite_attributes = {k = 1 : i64}, decomposition = @body} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.composite "a.name" %x {composite_attributes = {k = 1}, decomposition = @body} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.optimization_barrier %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>
  %3:2 = stablehlo.optimization_barrier %x, %2 : tensor<4xf32>, tensor<4xf32>
  return
}
func.func private @body(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func @random
func.func @random(%s: tensor<2xui64>, %a: tensor<f32>, %n: tensor<1xi64>) {
  // CHECK: stablehlo.rng_bit_generator %{{.*}}, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  %0:2 = stablehlo.rng_bit_generator %s, algorithm =  THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  // CHECK: stablehlo.rng %{{.*}}, %{{.*}}, %{{.*}}, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  %1 = stablehlo.rng %a, %a, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  return
}

// CHECK-LABEL: func.func @tokens
func.func @tokens(%x: tensor<4xf32>) {
  // CHECK: stablehlo.create_token : !stablehlo.token
  %0 = stablehlo.create_token : !stablehlo.token
  // CHECK: stablehlo.after_all %{{.*}}, %{{.*}} : !stablehlo.token
  %1 = stablehlo.after_all %0, %0 : !stablehlo.token
  // CHECK: stablehlo.tuple %{{.*}}, %{{.*}} : tuple<tensor<4xf32>, !stablehlo.token>
  %2 = stablehlo.tuple %x, %1 : tuple<tensor<4xf32>, !stablehlo.token>
  // CHECK: stablehlo.get_tuple_element %{{.*}}[0] : (tuple<tensor<4xf32>, !stablehlo.token>) -> tensor<4xf32>
  %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<4xf32>, !stablehlo.token>) -> tensor<4xf32>
  return
}

// Elements may be combined as wider ones.
// CHECK-LABEL: func.func @promoted
func.func @promoted(%x: tensor<4x16xf32>) -> tensor<4x4xf64> {
  // CHECK: "stablehlo.reduce_scatter"
  %0 = "stablehlo.reduce_scatter"(%x) ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %1 = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %1 : tensor<f64>
  }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 1 : i64} : (tensor<4x16xf32>) -> tensor<4x4xf64>
  return %0 : tensor<4x4xf64>
}

// The longer spelling of bounds.
// CHECK-LABEL: func.func @bounds(
// CHECK-SAME: tensor<?x?xf32, #stablehlo.bounds<16, ?>>
func.func @bounds(%x: tensor<?x?xf32, #stablehlo.type_extensions<bounds = [16, ?]>>) {
  return
}
