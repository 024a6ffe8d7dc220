// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Custom calls of functions that functions.c and functions.py register.
func.func @scaled(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<2x3xf32>
  %a = stablehlo.add %x, %one : tensor<2x3xf32>
  %b = stablehlo.custom_call @"scale$all"(%a) {backend_config = "3"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %c = stablehlo.custom_call @"scale$all"(%b) {api_version = 4 : i32, backend_config = {by = 2 : i64}} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %d = stablehlo.add %c, %one : tensor<2x3xf32>
  return %d : tensor<2x3xf32>
}

// Several results, a view with gaps, types of less than a byte, none at all.
func.func @several(%x: tensor<4x8xf32>) -> (tensor<2xf32>, tensor<2xi32>, tensor<3xi1>, tensor<0xf64>) {
  %part = stablehlo.slice %x [1:3, 2:5] : (tensor<4x8xf32>) -> tensor<2x3xf32>
  %y:4 = stablehlo.custom_call @rows(%part) : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xi32>, tensor<3xi1>, tensor<0xf64>)
  return %y#0, %y#1, %y#2, %y#3 : tensor<2xf32>, tensor<2xi32>, tensor<3xi1>, tensor<0xf64>
}

// The result begins as the first operand, which keeps its value.
func.func @in_place(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %one = stablehlo.constant dense<1.0> : tensor<2x3xf32>
  %a = stablehlo.add %x, %one : tensor<2x3xf32>
  %y = stablehlo.custom_call @accumulate(%a, %x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %a, %y : tensor<2x3xf32>, tensor<2x3xf32>
}

// Each trip calls it.
func.func @in_loop(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %twelve = stablehlo.constant dense<12> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<2x3xf32>
  cond {
    %more = stablehlo.compare LT, %i, %twelve : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %w = stablehlo.custom_call @"scale$all"(%v) {backend_config = "2"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    stablehlo.return %next, %w : tensor<i32>, tensor<2x3xf32>
  }
  return %r#1 : tensor<2x3xf32>
}

func.func @factors(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %y = stablehlo.custom_call @lapack_spotrf_ffi(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
