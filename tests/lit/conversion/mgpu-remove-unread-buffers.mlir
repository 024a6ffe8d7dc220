// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-remove-unread-buffers | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[D:[^:]*]]: !mgpu.device
func.func @main(%d: !mgpu.device, %c1: index, %one: f32) {
  // Launches only store to the first; the second is loaded, the third is not
  // marked.
  // CHECK-NEXT: %[[B:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<8xf32>
  // CHECK-NEXT: %[[C:.*]] = mgpu.alloc %[[D]] : !mgpu.device -> memref<16xf32>
  // CHECK-NEXT: mgpu.launch
  // CHECK-NEXT: memref.store %{{.*}}, %[[B]]
  // CHECK-NEXT: memref.load %[[B]]
  // CHECK-NEXT: memref.store %{{.*}}, %[[C]]
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  %a = mgpu.alloc %d {mgpu.mark = #mgpu.mark<forwarded>} : !mgpu.device -> memref<4xf32>
  %b = mgpu.alloc %d {mgpu.mark = #mgpu.mark<forwarded>} : !mgpu.device -> memref<8xf32>
  %c = mgpu.alloc %d : !mgpu.device -> memref<16xf32>
  mgpu.launch %d grid(%c1) block(%c1) {
    memref.store %one, %a[%c1] : memref<4xf32>
    memref.store %one, %b[%c1] : memref<8xf32>
    %v = memref.load %b[%c1] : memref<8xf32>
    memref.store %v, %c[%c1] : memref<16xf32>
  }
  mgpu.free %a, %d : memref<4xf32>, !mgpu.device
  return
}
