// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tensor without elements may be cut, and changes its layout.
// RUN: mgpu-tune run %s --arg i=1 --out r0=%t.npy
sdy.mesh @mesh = <["x"=2]>
func.func @main(%i: tensor<i32>, %a: tensor<0x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %b: tensor<0x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<0x2xf32> {
  %v = "stablehlo.case"(%i) ({
    "stablehlo.return"(%a) : (tensor<0x2xf32>) -> ()
  }, {
    "stablehlo.return"(%b) : (tensor<0x2xf32>) -> ()
  }) : (tensor<i32>) -> tensor<0x2xf32>
  return %v : tensor<0x2xf32>
}
