// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-outline-host-code | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%d: !mgpu.device, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %m = mgpu.alloc %d : !mgpu.device -> memref<4xf32>
  // What follows each other is one launch, loops and all.
  // CHECK: %[[SUM:.*]] = mgpu.alloc %{{.*}} -> memref<f32>
  // CHECK: mgpu.launch
  // CHECK: scf.for
  // CHECK: memref.store
  // CHECK: memref.load
  // CHECK: arith.addf
  // CHECK: memref.store %{{.*}}, %[[SUM]][]
  // CHECK-NEXT: }
  %v = arith.constant 2.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %v, %m[%i] : memref<4xf32>
  }
  %w = memref.load %m[%c1] : memref<4xf32>
  %s = arith.addf %w, %v : f32
  // A kernel that uses what was computed reads it from memory.
  // CHECK: mgpu.launch
  // CHECK-NEXT: %[[V:.*]] = memref.load %[[SUM]][]
  // CHECK: memref.store %[[V]]
  mgpu.launch %d grid(%c1) block(%c4) {
    %i = gpu.thread_id x
    memref.store %s, %m[%i] : memref<4xf32>
  }
  // CHECK: mgpu.launch
  // CHECK: mgpu.output <check> "grows"
  %x = memref.load %m[%c1] : memref<4xf32>
  %g = arith.cmpf ogt, %x, %v : f32
  cf.assert %g, "grows"
  return
}
