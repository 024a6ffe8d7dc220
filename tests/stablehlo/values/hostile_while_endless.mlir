// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A condition that is always true.
// exit 5: trips, whose operations are more than the 4000000 that a program may have
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, tensor<4xf32>
  cond {
    %t = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %y = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %i, %y : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
