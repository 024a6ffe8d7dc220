// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two named computations; --assign says which mesh runs each.
#topology = #mpmd.topology<<"front" : <["d"=2]>>, <"back" : <["d"=2]>>>
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> attributes {topology = #topology} {
  %h = mpmd.named_computation<"embed"> (%x) (%a: tensor<8x16xf32>) {
    %0 = stablehlo.exponential %a : tensor<8x16xf32>
    mpmd.return %0 : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = mpmd.named_computation<"head"> (%h) (%a: tensor<8x16xf32>) {
    %0 = stablehlo.sqrt %a : tensor<8x16xf32>
    mpmd.return %0 : tensor<8x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
