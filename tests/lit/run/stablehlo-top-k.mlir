// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-tune run %s | FileCheck %s

// The second tensor that is sorted is made by the operation before, and read at
// other places than it is written: the two share no launch.
// CHECK: fetch
func.func @main(){
  %x = stablehlo.constant dense<[3.0, 9.0, 1.0, 7.0]> : tensor<4xf32>
  %v, %i = chlo.top_k(%x, k = 3) : tensor<4xf32> -> (tensor<3xf32>, tensor<3xi32>)
  check.expect_eq_const %v, dense<[9.0, 7.0, 3.0]> : tensor<3xf32>
  check.expect_eq_const %i, dense<[1, 3, 0]> : tensor<3xi32>
  return
}
