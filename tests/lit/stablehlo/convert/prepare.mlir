// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --stablehlo-prepare | FileCheck %s

// Two constants of one type whose elements are not in the file are two
// arguments, also where a function that is called has one.
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32> {jax.arg_info = "params['w']", mgpu.name = "params['w']"
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4xf32> {mgpu.name = "1"}, %[[B:[a-z0-9]+]]: tensor<4xf32> {mgpu.name = "2"})
// CHECK-SAME: -> (tensor<4xf32> {spmd.alias = 0 : i64})
func.func @main(%x: tensor<4xf32> {jax.arg_info = "params['w']", tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %a = stablehlo.constant dense_resource<__elided__> : tensor<4xf32>
  // CHECK: stablehlo.add %[[X]], %[[A]]
  %0 = stablehlo.add %x, %a : tensor<4xf32>
  // CHECK: call @layer({{.*}}, %[[B]])
  %1 = func.call @layer(%0) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: call @square
  %2 = stablehlo.composite "my.square" %1 {decomposition = @square} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @layer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = stablehlo.constant dense_resource<__elided__> : tensor<4xf32>
  %0 = stablehlo.multiply %x, %b : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @square(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.multiply %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
