// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-tune run %s --entry right | FileCheck %s --check-prefix=RIGHT
// RUN: not mgpu-tune run %s --entry wrong 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not mgpu-tune bundle %s --entry right -o %t.mgpu 2>&1 | FileCheck %s --check-prefix=BUNDLE

// What a program says of its results is compared once they are fetched.
// RIGHT: fetch
func.func @right() -> tensor<3xf32> {
  %a = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %b = stablehlo.constant dense<[2.0, 4.0, 6.0]> : tensor<3xf32>
  %c = stablehlo.add %a, %a : tensor<3xf32>
  // BUNDLE: stablehlo-expect.mlir:[[#@LINE+1]]:3: a bundle does not compare results
  stablehlo.custom_call @check.expect_eq(%c, %b) {has_side_effect = true} : (tensor<3xf32>, tensor<3xf32>) -> ()
  return %c : tensor<3xf32>
}

func.func @wrong() {
  %a = stablehlo.constant dense<[[1.0, 2.0, 3.0]]> : tensor<1x3xf32>
  %c = stablehlo.add %a, %a : tensor<1x3xf32>
  // WRONG: stablehlo-expect.mlir:[[#@LINE+1]]:3: 1 of 3 elements are not as the program expects (within 0.0001): at [0, 2] it is 6, not 6.5
  check.expect_almost_eq_const %c, dense<[[2.0, 4.0, 6.5]]> : tensor<1x3xf32>
  return
}
