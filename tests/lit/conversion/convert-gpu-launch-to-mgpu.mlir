// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-gpu-launch-to-mgpu | FileCheck %s
// RUN: mgpu-opt %s --convert-gpu-launch-to-mgpu=entry=helper | FileCheck %s --check-prefix=HELPER

// CHECK: module attributes {gpu.container_module}
module attributes {gpu.container_module} {
  // The kernels' module is not used any more; the functions they call are
  // beside the host's, under another name where that is taken.
  // CHECK-NOT: gpu.module
  // HELPER: gpu.module @kernels
  gpu.module @kernels {
    func.func private @twice(%v: f32) -> f32 {
      %w = arith.addf %v, %v : f32
      return %w : f32
    }
    gpu.func @scale(%a: memref<64xf32>, %f: f32)
        workgroup(%tile: memref<32xf32, #gpu.address_space<workgroup>>)
        private(%own: memref<1xf32, #gpu.address_space<private>>) kernel {
      %i = gpu.global_id x
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      memref.store %f, %own[%c0] : memref<1xf32, #gpu.address_space<private>>
      %v = memref.load %a[%i] : memref<64xf32>
      %w = func.call @twice(%v) : (f32) -> f32
      memref.store %w, %tile[%t] : memref<32xf32, #gpu.address_space<workgroup>>
      gpu.return
    }
  }

  func.func private @twice(%v: f32) -> f32 {
    return %v : f32
  }

  // CHECK-LABEL: func.func @main
  // CHECK: %[[DEFAULT:.*]] = mgpu.get_device %{{.*}} {mgpu.mark = #mgpu.mark<head>}
  // CHECK: %[[D:.*]] = mgpu.get_device
  // CHECK: %[[A:.*]] = mgpu.alloc %[[D]]
  func.func @main(%n: index, %f: f32) {
    %c0 = arith.constant 0 : index
    %d = mgpu.get_device %c0 : !mgpu.device
    %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
    // A token is a stream, which has waited for those that it depends on.
    // CHECK: %[[S0:.*]] = mgpu.create_stream %[[DEFAULT]]
    // CHECK: %[[S1:.*]] = mgpu.create_stream %[[D]]
    // CHECK: mgpu.stream_wait %[[S1]], %[[S0]]
    %t0 = gpu.wait async
    // CHECK: mgpu.launch %[[D]] grid(%[[N:.*]], %[[N]], %[[N]]) block(%[[N]], %[[N]], %[[N]]) stream %[[S1]] workgroup(%[[TILE:.*]]: memref<32xf32, #gpu.address_space<workgroup>>) attributes {mgpu.name = "scale"} {
    // CHECK-NEXT: %[[OWN:.*]] = memref.alloca() : memref<1xf32, #gpu.address_space<private>>
    // CHECK: memref.store %{{.*}}, %[[OWN]]
    // CHECK: memref.load %[[A]]
    // CHECK: call @[[TWICE:twice_[0-9]+]]
    // CHECK: memref.store %{{.*}}, %[[TILE]]
    // CHECK-NEXT: }
    %t1 = gpu.launch_func async [%t0] @kernels::@scale
        blocks in (%n, %n, %n) threads in (%n, %n, %n)
        args(%a : memref<64xf32>, %f : f32)
    gpu.wait [%t1]
    // CHECK: mgpu.sync_stream %[[S1]]
    // Ids and sizes become operations.
    // CHECK-NEXT: mgpu.launch %[[D]] grid(%[[N]], %[[N]], %[[N]]) block(%[[N]], %[[N]], %[[N]]) attributes {mgpu.name = "launch"} {
    // CHECK-NEXT: %[[BX:.*]] = gpu.block_id x
    // CHECK: %[[TX:.*]] = gpu.thread_id x
    // CHECK: arith.addi %[[BX]], %[[TX]]
    // CHECK: }
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %n, %sz = %n) {
      %i = arith.addi %bx, %tx : index
      memref.store %f, %a[%i] : memref<64xf32>
      gpu.terminator
    }
    return
  }

  // Nothing calls this function: it stays as it is, though its memref is not
  // one of a device.
  // CHECK-LABEL: func.func @uncalled
  // CHECK: gpu.launch blocks
  // HELPER-LABEL: func.func @main
  // HELPER: gpu.launch_func
  func.func @uncalled(%a: memref<64xf32>, %n: index, %f: f32) {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %n, %gy = %n, %gz = %n)
               threads(%tx, %ty, %tz) in (%sx = %n, %sy = %n, %sz = %n) {
      memref.store %f, %a[%bx] : memref<64xf32>
      gpu.terminator
    }
    return
  }

  func.func @helper() {
    return
  }

  // CHECK: func.func private @[[TWICE]](
  // CHECK: arith.addf
}
