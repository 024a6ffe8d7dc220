// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-linalg-points-to-mgpu | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[D:.*]]: !mgpu.device, %[[ONE:.*]]: f32)
func.func @main(%d: !mgpu.device, %one: f32) {
  // CHECK: %[[A:.*]] = mgpu.alloc
  // CHECK: %[[B:.*]] = mgpu.alloc
  // CHECK: %[[C:.*]] = mgpu.alloc
  %a = mgpu.alloc %d : !mgpu.device -> memref<64x32xf32>
  %b = mgpu.alloc %d : !mgpu.device -> memref<32x70xf32>
  %c = mgpu.alloc %d : !mgpu.device -> memref<64x70xf32>

  // A thread for each element, in blocks of 32 x 8 that cover them all.
  // CHECK-DAG: %[[GX:.*]] = arith.constant 1 : index
  // CHECK: mgpu.launch %[[D]] grid({{.*}}) block({{.*}}) attributes {mgpu.name = "exp"} {
  // CHECK: %[[X:.*]] = arith.addi
  // CHECK: %[[Y:.*]] = arith.addi
  // CHECK-NOT: scf.if
  // CHECK: %[[V:.*]] = memref.load %[[A]][%[[Y]], %[[X]]]
  // CHECK-NEXT: %[[E:.*]] = math.exp %[[V]]
  // CHECK-NEXT: memref.store %[[E]], %[[A]][%[[Y]], %[[X]]]
  // CHECK-NEXT: }
  linalg.exp ins(%a : memref<64x32xf32>) outs(%a : memref<64x32xf32>)

  // The reduction runs in each thread, in order; 70 is not a multiple of the
  // block, so its last threads are guarded. The operands are those of the
  // launch, for a target with a text of its own.
  // CHECK: mgpu.launch %[[D]] args(%[[A]], %[[B]], %[[C]] : {{.*}}) grid({{.*}}) block({{.*}}) attributes {mgpu.name = "matmul", mgpu.product = #mgpu.product<m = {{[0-9]+}}, n = {{[0-9]+}}, k = {{[0-9]+}}, a = f32, b = f32, c = f32>} {
  // CHECK: %[[X:.*]] = arith.addi
  // CHECK: %[[Y:.*]] = arith.addi
  // CHECK: %[[N:.*]] = arith.constant 70 : index
  // CHECK: arith.cmpi slt, %[[X]], %[[N]]
  // CHECK-NEXT: scf.if
  // CHECK: %[[BEFORE:.*]] = memref.load %[[C]][%[[Y]], %[[X]]]
  // CHECK: %[[SUM:.*]] = scf.for %[[K:.*]] = {{.*}} iter_args(%[[SO:.*]] = %[[BEFORE]])
  // CHECK: %[[L:.*]] = memref.load %[[A]][%[[Y]], %[[K]]]
  // CHECK: %[[R:.*]] = memref.load %[[B]][%[[K]], %[[X]]]
  // CHECK: math.fma %[[L]], %[[R]], %[[SO]] : f32
  // CHECK: memref.store %[[SUM]], %[[C]][%[[Y]], %[[X]]]
  linalg.matmul ins(%a, %b : memref<64x32xf32>, memref<32x70xf32>) outs(%c : memref<64x70xf32>)

  // A group is one launch: what one operation stores the next has at hand, and
  // a parallel loop of the same points takes part.
  // CHECK: %[[S:.*]] = mgpu.alloc %[[D]] {mgpu.mark = #mgpu.mark<forwarded>}
  // CHECK: mgpu.launch {{.*}} attributes {mgpu.name = "fill_mul_parallel"} {
  // CHECK: %[[M:.*]] = arith.mulf %{{.*}}, %[[ONE]]
  // CHECK-NEXT: memref.store %[[M]], %[[S]]
  // CHECK: arith.addf %[[M]], %[[M]]
  %s = mgpu.alloc %d : !mgpu.device -> memref<64x32xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c32 = arith.constant 32 : index
  linalg.fill {mgpu.launch_group = 0 : i64} ins(%one : f32) outs(%s : memref<64x32xf32>)
  linalg.mul {mgpu.launch_group = 0 : i64} ins(%a, %s : memref<64x32xf32>, memref<64x32xf32>) outs(%s : memref<64x32xf32>)
  scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c32) step (%c1, %c1) {
    %v = memref.load %s[%i, %j] : memref<64x32xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %a[%i, %j] : memref<64x32xf32>
  } {mgpu.launch_group = 0 : i64}

  // A thread for each row.
  // CHECK: mgpu.launch {{.*}} attributes {mgpu.name = "softmax"} {
  // CHECK: %[[LARGEST:.*]] = scf.for
  // CHECK: arith.maxnumf
  // CHECK: scf.for
  // CHECK: arith.subf %{{.*}}, %[[LARGEST]]
  // CHECK: scf.for
  // CHECK: arith.divf
  linalg.softmax dimension(1) ins(%a : memref<64x32xf32>) outs(%a : memref<64x32xf32>)

  // An operation without elements is nothing.
  // CHECK-NOT: mgpu.launch
  // CHECK-NOT: linalg
  %none = mgpu.alloc %d : !mgpu.device -> memref<0xf32>
  linalg.exp ins(%none : memref<0xf32>) outs(%none : memref<0xf32>)
  return
}

// CHECK-LABEL: func.func @uncalled
// CHECK: linalg.exp
func.func @uncalled(%a: memref<?xf32>) {
  linalg.exp ins(%a : memref<?xf32>) outs(%a : memref<?xf32>)
  return
}
