// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-stablehlo-to-linalg --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %flag: tensor<i1>) -> (tensor<4xf32>, tensor<i32>, tensor<4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %ten = stablehlo.constant dense<10> : tensor<i32>
  // A loop that counts stays one; what counts is not carried.
  // CHECK: scf.for %{{.*}} = %c0 to %c10 step %c1 iter_args(%{{.*}} = %{{.*}}) -> (tensor<4xf32>)
  %loop:3 = stablehlo.while(%i = %zero, %end = %ten, %acc = %x) : tensor<i32>, tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %end, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %next = stablehlo.add %i, %one : tensor<i32>
      %sum = stablehlo.add %acc, %acc : tensor<4xf32>
      stablehlo.return %next, %end, %sum : tensor<i32>, tensor<i32>, tensor<4xf32>
    }
  // A number of the devices chooses between the results of both branches.
  // CHECK: math.exp
  // CHECK: math.log
  // CHECK: arith.select
  %branch = "stablehlo.if"(%flag) ({
    %0 = stablehlo.exponential %x : tensor<4xf32>
    stablehlo.return %0 : tensor<4xf32>
  }, {
    %0 = stablehlo.log %x : tensor<4xf32>
    stablehlo.return %0 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  // After the loop, its counter is 10.
  // CHECK: linalg.fill ins(%c10_i32
  return %loop#2, %loop#0, %branch : tensor<4xf32>, tensor<i32>, tensor<4xf32>
}
