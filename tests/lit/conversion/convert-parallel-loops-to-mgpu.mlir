// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-parallel-loops-to-mgpu | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[ONE:.*]]: f32, %[[FROM:.*]]: index, %[[TO:.*]]: index, %[[STEP:.*]]: index)
func.func @main(%d: !mgpu.device, %one: f32, %from: index, %to: index, %step: index) {
  // CHECK: %[[A:.*]] = mgpu.alloc
  %a = mgpu.alloc %d : !mgpu.device -> memref<64x32xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index

  // Ranges may be values; the last dimension is x.
  // CHECK: %[[LENGTH:.*]] = arith.subi %[[TO]], %[[FROM]]
  // CHECK: %[[TRIPS:.*]] = arith.ceildivsi %[[LENGTH]], %[[STEP]]
  // CHECK: mgpu.launch %[[D]] grid({{.*}}) block({{.*}}) attributes {mgpu.name = "parallel"} {
  // CHECK: %[[Y:.*]] = arith.addi
  // CHECK: %[[X:.*]] = arith.addi
  // CHECK: arith.cmpi slt, %[[Y]], %[[TRIPS]]
  // CHECK: scf.if
  // CHECK: arith.cmpi slt, %[[X]],
  // CHECK: scf.if
  // CHECK: %[[STEPS:.*]] = arith.muli %[[Y]], %[[STEP]]
  // CHECK: %[[I:.*]] = arith.addi %[[FROM]], %[[STEPS]]
  // CHECK: memref.store %[[ONE]], %[[A]][%[[I]], %[[X]]]
  scf.parallel (%i, %j) = (%from, %c0) to (%to, %c32) step (%step, %c1) {
    memref.store %one, %a[%i, %j] : memref<64x32xf32>
  }

  // A group is one launch.
  // CHECK: mgpu.launch {{.*}} attributes {mgpu.name = "parallel_parallel"} {
  // CHECK: %[[TWO:.*]] = arith.addf
  // CHECK: arith.mulf %[[TWO]], %[[TWO]]
  // CHECK: mgpu.launch
  // CHECK-NEXT: func.call @device
  %b = mgpu.alloc %d : !mgpu.device -> memref<32xf32>
  scf.parallel (%i) = (%c0) to (%c32) step (%c1) {
    %v = arith.addf %one, %one : f32
    memref.store %v, %b[%i] : memref<32xf32>
  } {mgpu.launch_group = 0 : i64}
  scf.parallel (%i) = (%c0) to (%c32) step (%c1) {
    %v = memref.load %b[%i] : memref<32xf32>
    %w = arith.mulf %v, %v : f32
    memref.store %w, %b[%i] : memref<32xf32>
  } {mgpu.launch_group = 0 : i64}
  mgpu.launch %d grid(%c1) block(%c1) {
    func.call @device() : () -> ()
  }
  return
}

// Kernels alone call this function, so its loop is one of each thread.
// CHECK-LABEL: func.func @device
// CHECK: scf.parallel
func.func @device() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%c1) step (%c1) {
  }
  return
}
