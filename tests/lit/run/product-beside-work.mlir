// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Work that shares a launch with a product is done once for each element, also
// where the product's sums begin with a constant.
// RUN: mgpu-tune run %s --random --out r0=%t.r0.npy --out r1=%t.r1.npy
// RUN: mgpu-tune run %s --random --no-fusion --out r0=%t.s0.npy --out r1=%t.s1.npy
// RUN: cmp %t.r0.npy %t.s0.npy
// RUN: cmp %t.r1.npy %t.s1.npy
// RUN: mgpu-tune check %s | FileCheck %s
// CHECK: 1 kernel,
func.func @main(%y: tensor<37x45xf32>, %a: tensor<37x700xf32>, %b: tensor<700x45xf32>) -> (tensor<37x45xf32>, tensor<37x45xf32>) {
  %e = stablehlo.exponential %y : tensor<37x45xf32>
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<37x700xf32>, tensor<700x45xf32>) -> tensor<37x45xf32>
  %r = stablehlo.add %e, %p : tensor<37x45xf32>
  return %r, %e : tensor<37x45xf32>, tensor<37x45xf32>
}
