// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-tune run %s | FileCheck %s

// A constant of i1 may have a byte or a bit for each element.
// CHECK: fetch
func.func @main() {
  %bytes = stablehlo.constant dense<"0x01000000000001000101"> : tensor<2x5xi1>
  check.expect_eq_const %bytes, dense<[[true, false, false, false, false], [false, true, false, true, true]]> : tensor<2x5xi1>
  %bits = stablehlo.constant dense<"0x4103"> : tensor<2x5xi1>
  stablehlo.custom_call @check.expect_eq(%bits, %bytes) {has_side_effect = true} : (tensor<2x5xi1>, tensor<2x5xi1>) -> ()
  return
}
