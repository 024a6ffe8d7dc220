// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --mgpu-place-host-memory | FileCheck %s

// CHECK: mgpu.device_config @mgpu_devices #mgpu.device_config<numDevices = 2>
memref.global "private" @table : memref<4xf32> = dense<1.0>

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: memref<4xf32>
func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
  // What an argument and a global hold is copied at the start.
  // CHECK: %[[HOST:.*]] = mgpu.get_device %c-1
  // CHECK: %[[HOME:.*]] = mgpu.get_device %c0
  // CHECK: %[[XD:.*]] = mgpu.alloc %[[HOME]]
  // CHECK-NEXT: mgpu.memcpy %[[XD]], %[[X]], %[[HOME]], %[[HOST]]
  // CHECK: %[[T:.*]] = memref.get_global @table
  // CHECK-NEXT: %[[TABLE:.*]] = mgpu.alloc %[[HOME]]
  // CHECK-NEXT: mgpu.memcpy %[[TABLE]], %[[T]], %[[HOME]], %[[HOST]]
  // CHECK: %[[M:.*]] = mgpu.alloc %[[HOME]]
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %d = mgpu.get_device %c1 : !mgpu.device
  %t = memref.get_global @table : memref<4xf32>
  %m = memref.alloc() : memref<4xf32>
  // What nothing computes on stays where it is.
  // CHECK: memref.alloc() : memref<8xf32>
  %other = memref.alloc() : memref<8xf32>
  // Another device works on copies; what it writes goes back.
  // CHECK: %[[TWIN:.*]] = mgpu.alloc %[[D:.*]] :
  // CHECK-NEXT: mgpu.memcpy %[[TWIN]], %{{.*}}, %[[D]], %[[HOME]]
  // CHECK: mgpu.launch %[[D]]
  // CHECK: }
  // CHECK-NEXT: mgpu.memcpy %[[M]], %{{.*}}, %[[HOME]], %[[D]]
  // CHECK-NEXT: mgpu.memcpy %[[XD]], %{{.*}}, %[[HOME]], %[[D]]
  // CHECK-NOT: mgpu.memcpy %[[TABLE]]
  mgpu.launch %d grid(%c1) block(%c4) {
    %i = gpu.thread_id x
    %v = memref.load %t[%i] : memref<4xf32>
    memref.store %v, %m[%i] : memref<4xf32>
    memref.store %v, %x[%i] : memref<4xf32>
  }
  // CHECK: %[[R:.*]] = memref.alloc() : memref<4xf32>
  // CHECK: mgpu.memcpy %[[R]], %[[M]], %[[HOST]], %[[HOME]]
  // CHECK: return %[[R]]
  return %m : memref<4xf32>
}
