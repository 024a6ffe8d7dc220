// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Meshes of several forms: "wide" has 4 x 2 devices, of which a part of axis
// "x" shares the rows of the batch, and "small" has two, in an order of its
// own. The function says which mesh runs what, and "norm" runs where its
// operand is.
#topology = #mpmd.topology<<"wide" : <["x"=4, "y"=2]>>, <"small" : <["z"=2], device_ids=[1, 0]>>>
sdy.mesh @wide = <["x"=4, "y"=2]>
sdy.mesh @small = <["z"=2], device_ids=[1, 0]>
#rows = #sdy.sharding<@wide, [{"x":(1)2}, {}]>
#columns = #sdy.sharding<@wide, [{}, {"y"}]>
#parts = #sdy.sharding<@small, [{"z"}, {}]>

func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #rows}, %w: tensor<16x32xf32> {sdy.sharding = #columns},
                %v: tensor<32x4xf32> {sdy.sharding = #parts})
    -> (tensor<8x4xf32>, tensor<8x32xf32>)
    attributes {topology = #topology, mpmd.assignment = {encode = "wide", decode = "small"}} {
  %h = mpmd.named_computation<"encode"> (%x, %w) (%a: tensor<8x16xf32>, %b: tensor<16x32xf32>) {
    %0 = stablehlo.dot %a, %b : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    mpmd.return %0 : tensor<8x32xf32>
  } : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %n = mpmd.named_computation<"norm"> (%h) (%a: tensor<8x32xf32>) {
    %low = stablehlo.constant dense<-2.0> : tensor<8x32xf32>
    %high = stablehlo.constant dense<2.0> : tensor<8x32xf32>
    %0 = stablehlo.clamp %low, %a, %high : tensor<8x32xf32>
    mpmd.return %0 : tensor<8x32xf32>
  } : (tensor<8x32xf32>) -> tensor<8x32xf32>
  %y = mpmd.named_computation<"decode"> (%n, %v) (%a: tensor<8x32xf32>, %b: tensor<32x4xf32>) {
    %0 = stablehlo.dot %a, %b : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
    mpmd.return %0 : tensor<8x4xf32>
  } : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
  return %y, %n : tensor<8x4xf32>, tensor<8x32xf32>
}
