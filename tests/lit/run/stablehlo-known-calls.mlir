// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Custom calls of XLA's libraries whose meaning is known.
// RUN: mgpu-tune run %s --entry threefry | FileCheck %s
// RUN: mgpu-tune run %s --entry top_k | FileCheck %s
// RUN: mgpu-tune check %s --entry smallest 2>&1 | FileCheck %s --check-prefix=OPAQUE
// CHECK: fetch

// The known answers of Random123 for Threefry-2x32 of 20 rounds.
func.func @threefry() {
  %k0 = stablehlo.constant dense<[0, 4294967295, 320440878]> : tensor<3xui32>
  %k1 = stablehlo.constant dense<[0, 4294967295, 57701188]> : tensor<3xui32>
  %x0 = stablehlo.constant dense<[0, 4294967295, 608135816]> : tensor<3xui32>
  %x1 = stablehlo.constant dense<[0, 4294967295, 2242054355]> : tensor<3xui32>
  %y:2 = stablehlo.custom_call @cu_threefry2x32_ffi(%k0, %k1, %x0, %x1) {api_version = 4 : i32} : (tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>) -> (tensor<3xui32>, tensor<3xui32>)
  %z0 = stablehlo.constant dense<[1797259609, 481924860, 3297917596]> : tensor<3xui32>
  %z1 = stablehlo.constant dense<[2579123966, 3137350631, 1212020640]> : tensor<3xui32>
  stablehlo.custom_call @check.expect_eq(%y#0, %z0) {has_side_effect = true} : (tensor<3xui32>, tensor<3xui32>) -> ()
  stablehlo.custom_call @check.expect_eq(%y#1, %z1) {has_side_effect = true} : (tensor<3xui32>, tensor<3xui32>) -> ()
  return
}

func.func @top_k() {
  %x = stablehlo.constant dense<[[3.0, 9.0, 1.0, 9.0], [-1.0, -4.0, 0.0, -2.0]]> : tensor<2x4xf32>
  %y:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version = 1 : i64} : (tensor<2x4xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
  %z = stablehlo.constant dense<[[9.0, 9.0], [0.0, -1.0]]> : tensor<2x2xf32>
  %at = stablehlo.constant dense<[[1, 3], [2, 0]]> : tensor<2x2xi32>
  stablehlo.custom_call @check.expect_eq(%y#0, %z) {has_side_effect = true} : (tensor<2x2xf32>, tensor<2x2xf32>) -> ()
  stablehlo.custom_call @check.expect_eq(%y#1, %at) {has_side_effect = true} : (tensor<2x2xi32>, tensor<2x2xi32>) -> ()
  return
}

// The least elements are another thing, which nobody knows.
// OPAQUE: [[#@LINE+2]]:10: warning: nothing says what 'mhlo.topk' computes
func.func @smallest(%x: tensor<4xf32>) -> tensor<2xf32> {
  %y:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2 : i64, largest = false}} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
  return %y#0 : tensor<2xf32>
}
