// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --spmd-keep-loop-buffers | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<4xf32>, %n: index) -> (tensor<4xf32>, tensor<4xf32>, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}})
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x, %k = %c0) -> (tensor<4xf32>, tensor<4xf32>, index) {
    // CHECK: %[[SUM:.*]] = arith.addf
    %sum = arith.addf %a, %b : tensor<4xf32>
    %next = arith.addi %k, %i : index
    // What stays where it is, and scalars, need no store.
    // CHECK: %[[STORED:.*]] = bufferization.materialize_in_destination %[[SUM]] in %[[A]]
    // CHECK-NEXT: scf.yield %[[STORED]], %[[B]], %{{.*}}
    scf.yield %sum, %b, %next : tensor<4xf32>, tensor<4xf32>, index
  }
  return %r#0, %r#1, %r#2 : tensor<4xf32>, tensor<4xf32>, index
}
