// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg --split-input-file --verify-diagnostics

func.func @main(%n: tensor<i32>) -> tensor<i32> {
  // expected-error @below {{'stablehlo.while' op goes on as long as numbers on the devices say}}
  %0 = stablehlo.while(%i = %n) : tensor<i32>
    cond {
      %ten = stablehlo.constant dense<10> : tensor<i32>
      %go = stablehlo.compare LT, %i, %ten, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %next = stablehlo.add %i, %i : tensor<i32>
      stablehlo.return %next : tensor<i32>
    }
  return %0 : tensor<i32>
}

// -----

func.func @main(%x: tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>> {
  // expected-error @below {{complex numbers are not read by this version}}
  %0 = stablehlo.add %x, %x : tensor<2xcomplex<f32>>
  return %0 : tensor<2xcomplex<f32>>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @below {{'accumulate' names operands and results that it does not have as one memory}}
  %0 = stablehlo.custom_call @accumulate(%x) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>]} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %zero: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%x init: %zero) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
   reducer(%a: tensor<f32>, %b: tensor<f32>) {
    // expected-error @below {{stands in the region of 'stablehlo.reduce', which may have operations on single numbers alone}}
    %1 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<2xf32>
    stablehlo.return %b : tensor<f32>
  }
  return %0 : tensor<f32>
}

// -----

func.func @main(%x: tensor<2xi4>) -> tensor<2xi4> {
  // expected-error @below {{has integers of less than 8 bits, whose bits in memory it would show}}
  %0 = stablehlo.popcnt %x : tensor<2xi4>
  return %0 : tensor<2xi4>
}

// -----

func.func @main(%x: tensor<2x2xf32>, %y: tensor<1x2x2xf32>, %n: tensor<1xi32>) -> tensor<2x2xf32> {
  // expected-error @below {{'chlo.ragged_dot' op is not read by this version (docs/limits.md)}}
  %0 = "chlo.ragged_dot"(%x, %y, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<
      lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],
      rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}
    : (tensor<2x2xf32>, tensor<1x2x2xf32>, tensor<1xi32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// -----

func.func @main() -> tensor<9223372036854775807x3xf32> {
  // expected-error @below {{has a value of type 'tensor<9223372036854775807x3xf32>': it has more elements than any memory}}
  %0 = stablehlo.constant dense<1.0> : tensor<9223372036854775807x3xf32>
  return %0 : tensor<9223372036854775807x3xf32>
}
