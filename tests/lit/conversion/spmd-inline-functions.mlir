// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-inline-functions | FileCheck %s

// What it calls is inlined, in branches and loops too, with what that calls.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[IS:.*]]: i1)
// CHECK-NEXT: %[[A:.*]] = math.exp %[[X]]
// CHECK-NEXT: %[[B:.*]] = math.sqrt %[[A]]
// CHECK-NEXT: scf.if %[[IS]]
// CHECK-NEXT: %[[C:.*]] = math.exp %[[B]]
// CHECK-NEXT: scf.yield %[[C]]
// CHECK-NEXT: else
// CHECK-NEXT: scf.yield %[[B]]
// CHECK: call @itself
// CHECK: call @elsewhere
func.func @main(%x: tensor<4xf32>, %is: i1) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a, %b = func.call @both(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c = scf.if %is -> tensor<4xf32> {
    %e = func.call @exp(%b) : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %e : tensor<4xf32>
  } else {
    scf.yield %b : tensor<4xf32>
  }
  // Recursion and functions without a body stay.
  %d = func.call @itself(%c) : (tensor<4xf32>) -> tensor<4xf32>
  %e = func.call @elsewhere(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func private @both(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = func.call @exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %b = math.sqrt %a : tensor<4xf32>
  return %x, %b : tensor<4xf32>, tensor<4xf32>
}

func.func private @exp(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = math.exp %x : tensor<4xf32>
  return %a : tensor<4xf32>
}

func.func private @itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = func.call @itself(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %a : tensor<4xf32>
}

func.func private @elsewhere(tensor<4xf32>) -> tensor<4xf32>
