// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inference as a pipeline of three layers on meshes of 1, 2 and 1 devices: six
// microbatches of four rows, one for each round of the loop. Try it with
// --schedule gpipe.
#topology = #mpmd.topology<<"m0" : <["a"=1]>>, <"m1" : <["b"=2]>>, <"m2" : <["c"=1]>>>

func.func @main(%x: tensor<24x8xf32>, %w0: tensor<8x8xf32>, %w1: tensor<8x8xf32>, %w2: tensor<8x8xf32>)
    -> tensor<24x8xf32>
    attributes {topology = #topology, mpmd.assignment = {first = "m0", second = "m1", third = "m2"}} {
  %none = stablehlo.constant dense<0.0> : tensor<24x8xf32>
  %all:5 = mpmd.for (%none, %x, %w0, %w1, %w2) {iterations = 6 : ui32, unroll_factor = 3 : ui32}
      (%y: tensor<24x8xf32>, %in: tensor<24x8xf32>, %v0: tensor<8x8xf32>, %v1: tensor<8x8xf32>, %v2: tensor<8x8xf32>,
       %round: tensor<i32>) {
    %h0 = mpmd.named_computation<"first"> (%in, %v0, %round)
        (%a: tensor<24x8xf32>, %w: tensor<8x8xf32>, %k: tensor<i32>) {
      %four = stablehlo.constant dense<4> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %row = stablehlo.multiply %k, %four : tensor<i32>
      %part = stablehlo.dynamic_slice %a, %row, %zero, sizes = [4, 8]
          : (tensor<24x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
      %0 = stablehlo.dot %part, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      mpmd.return %0 : tensor<4x8xf32>
    } : (tensor<24x8xf32>, tensor<8x8xf32>, tensor<i32>) -> tensor<4x8xf32>
    %h1 = mpmd.named_computation<"second"> (%h0, %v1) (%a: tensor<4x8xf32>, %w: tensor<8x8xf32>) {
      %0 = stablehlo.dot %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      mpmd.return %0 : tensor<4x8xf32>
    } : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %next = mpmd.named_computation<"third"> (%h1, %v2, %y, %round)
        (%a: tensor<4x8xf32>, %w: tensor<8x8xf32>, %all: tensor<24x8xf32>, %k: tensor<i32>) {
      %four = stablehlo.constant dense<4> : tensor<i32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %row = stablehlo.multiply %k, %four : tensor<i32>
      %0 = stablehlo.dot %a, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %1 = stablehlo.dynamic_update_slice %all, %0, %row, %zero
          : (tensor<24x8xf32>, tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<24x8xf32>
      mpmd.return %1 : tensor<24x8xf32>
    } : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<24x8xf32>, tensor<i32>) -> tensor<24x8xf32>
    mpmd.return %next, %in, %v0, %v1, %v2
        : tensor<24x8xf32>, tensor<24x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  } : tensor<24x8xf32>, tensor<24x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  return %all#0 : tensor<24x8xf32>
}
