// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-launch-ids-to-gpu | FileCheck %s

// CHECK-LABEL: func.func @main
func.func @main(%d: !mgpu.device, %n: index, %a: memref<64xindex>) {
  // CHECK: mgpu.launch
  // CHECK-NEXT: %[[B:.*]] = gpu.block_id x
  // CHECK-NEXT: %[[T:.*]] = gpu.thread_id y
  // CHECK-NEXT: memref.store %[[B]], %{{.*}}[%[[T]]]
  // CHECK-NEXT: }
  mgpu.launch %d grid(%n) block(%n) {
  ^bb0(%bx: index, %by: index, %bz: index, %tx: index, %ty: index, %tz: index):
    memref.store %bx, %a[%ty] : memref<64xindex>
  }
  return
}
