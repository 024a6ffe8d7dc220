// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// y = relu(x * w1) * w2 with tensor parallelism: each device holds a block of
// columns of w1 and the matching block of rows of w2, and computes a partial y;
// the all_reduce adds the four parts.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

func.func @main(%x: memref<32x64xf32>, %w1: memref<64x128xf32> {mgpu.role = "resident"},
                %w2: memref<128x64xf32> {mgpu.role = "resident"},
                %y: memref<32x64xf32> {mgpu.role = "output"}) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %d2 = mgpu.get_device %c2 : !mgpu.device
  %d3 = mgpu.get_device %c3 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  %s2 = mgpu.create_stream %d2 : !mgpu.device -> !mgpu.stream
  %s3 = mgpu.create_stream %d3 : !mgpu.device -> !mgpu.stream
  %comm = mgpu.create_communicator %d0, %d1, %d2, %d3 : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> !mgpu.communicator
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant 0.0 : f32

  %x0 = mgpu.alloc %d0 : !mgpu.device -> memref<32x64xf32>
  %x1 = mgpu.alloc %d1 : !mgpu.device -> memref<32x64xf32>
  %x2 = mgpu.alloc %d2 : !mgpu.device -> memref<32x64xf32>
  %x3 = mgpu.alloc %d3 : !mgpu.device -> memref<32x64xf32>
  %a0 = mgpu.alloc %d0 : !mgpu.device -> memref<64x32xf32>
  %a1 = mgpu.alloc %d1 : !mgpu.device -> memref<64x32xf32>
  %a2 = mgpu.alloc %d2 : !mgpu.device -> memref<64x32xf32>
  %a3 = mgpu.alloc %d3 : !mgpu.device -> memref<64x32xf32>
  %b0 = mgpu.alloc %d0 : !mgpu.device -> memref<32x64xf32>
  %b1 = mgpu.alloc %d1 : !mgpu.device -> memref<32x64xf32>
  %b2 = mgpu.alloc %d2 : !mgpu.device -> memref<32x64xf32>
  %b3 = mgpu.alloc %d3 : !mgpu.device -> memref<32x64xf32>
  %h0 = mgpu.alloc %d0 : !mgpu.device -> memref<32x32xf32>
  %h1 = mgpu.alloc %d1 : !mgpu.device -> memref<32x32xf32>
  %h2 = mgpu.alloc %d2 : !mgpu.device -> memref<32x32xf32>
  %h3 = mgpu.alloc %d3 : !mgpu.device -> memref<32x32xf32>
  %y0 = mgpu.alloc %d0 : !mgpu.device -> memref<32x64xf32>
  %y1 = mgpu.alloc %d1 : !mgpu.device -> memref<32x64xf32>
  %y2 = mgpu.alloc %d2 : !mgpu.device -> memref<32x64xf32>
  %y3 = mgpu.alloc %d3 : !mgpu.device -> memref<32x64xf32>
  mgpu.replicate %x, %host, [%d0, %d1, %d2, %d3], [%x0, %x1, %x2, %x3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream
      : memref<32x64xf32>, !mgpu.device, [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device], [memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>]
  mgpu.scatter %w1, %host, [%a0, %a1, %a2, %a3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 1
      : memref<64x128xf32>, !mgpu.device, [memref<64x32xf32>, memref<64x32xf32>, memref<64x32xf32>, memref<64x32xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.scatter %w2, %host, [%b0, %b1, %b2, %b3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<128x64xf32>, !mgpu.device, [memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>, memref<32x64xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]

  // h = relu(x * a): one thread per element.
  mgpu.launch %d0 grid(%c32) block(%c32) stream %s0 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (f32) {
      %xv = memref.load %x0[%i, %k] : memref<32x64xf32>
      %wv = memref.load %a0[%k, %j] : memref<64x32xf32>
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h0[%i, %j] : memref<32x32xf32>
  }
  mgpu.launch %d1 grid(%c32) block(%c32) stream %s1 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (f32) {
      %xv = memref.load %x1[%i, %k] : memref<32x64xf32>
      %wv = memref.load %a1[%k, %j] : memref<64x32xf32>
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h1[%i, %j] : memref<32x32xf32>
  }
  mgpu.launch %d2 grid(%c32) block(%c32) stream %s2 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (f32) {
      %xv = memref.load %x2[%i, %k] : memref<32x64xf32>
      %wv = memref.load %a2[%k, %j] : memref<64x32xf32>
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h2[%i, %j] : memref<32x32xf32>
  }
  mgpu.launch %d3 grid(%c32) block(%c32) stream %s3 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %zero) -> (f32) {
      %xv = memref.load %x3[%i, %k] : memref<32x64xf32>
      %wv = memref.load %a3[%k, %j] : memref<64x32xf32>
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h3[%i, %j] : memref<32x32xf32>
  }

  // The partial y = h * b.
  mgpu.launch %d0 grid(%c32) block(%c64) stream %s0 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %zero) -> (f32) {
      %hv = memref.load %h0[%i, %k] : memref<32x32xf32>
      %wv = memref.load %b0[%k, %j] : memref<32x64xf32>
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %y0[%i, %j] : memref<32x64xf32>
  }
  mgpu.launch %d1 grid(%c32) block(%c64) stream %s1 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %zero) -> (f32) {
      %hv = memref.load %h1[%i, %k] : memref<32x32xf32>
      %wv = memref.load %b1[%k, %j] : memref<32x64xf32>
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %y1[%i, %j] : memref<32x64xf32>
  }
  mgpu.launch %d2 grid(%c32) block(%c64) stream %s2 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %zero) -> (f32) {
      %hv = memref.load %h2[%i, %k] : memref<32x32xf32>
      %wv = memref.load %b2[%k, %j] : memref<32x64xf32>
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %y2[%i, %j] : memref<32x64xf32>
  }
  mgpu.launch %d3 grid(%c32) block(%c64) stream %s3 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %zero) -> (f32) {
      %hv = memref.load %h3[%i, %k] : memref<32x32xf32>
      %wv = memref.load %b3[%k, %j] : memref<32x64xf32>
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %y3[%i, %j] : memref<32x64xf32>
  }

  mgpu.all_reduce %y0, %y0, %comm, sum stream %s0 : !mgpu.stream
      : memref<32x64xf32>, memref<32x64xf32>, !mgpu.communicator
  mgpu.all_reduce %y1, %y1, %comm, sum stream %s1 : !mgpu.stream
      : memref<32x64xf32>, memref<32x64xf32>, !mgpu.communicator
  mgpu.all_reduce %y2, %y2, %comm, sum stream %s2 : !mgpu.stream
      : memref<32x64xf32>, memref<32x64xf32>, !mgpu.communicator
  mgpu.all_reduce %y3, %y3, %comm, sum stream %s3 : !mgpu.stream
      : memref<32x64xf32>, memref<32x64xf32>, !mgpu.communicator

  mgpu.memcpy %y, %y0, %host, %d0 stream %s0 : !mgpu.stream : memref<32x64xf32>, memref<32x64xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.sync_stream %s2 : !mgpu.stream
  mgpu.sync_stream %s3 : !mgpu.stream
  mgpu.free %x0, %d0 : memref<32x64xf32>, !mgpu.device
  mgpu.free %x1, %d1 : memref<32x64xf32>, !mgpu.device
  mgpu.free %x2, %d2 : memref<32x64xf32>, !mgpu.device
  mgpu.free %x3, %d3 : memref<32x64xf32>, !mgpu.device
  mgpu.free %a0, %d0 : memref<64x32xf32>, !mgpu.device
  mgpu.free %a1, %d1 : memref<64x32xf32>, !mgpu.device
  mgpu.free %a2, %d2 : memref<64x32xf32>, !mgpu.device
  mgpu.free %a3, %d3 : memref<64x32xf32>, !mgpu.device
  mgpu.free %b0, %d0 : memref<32x64xf32>, !mgpu.device
  mgpu.free %b1, %d1 : memref<32x64xf32>, !mgpu.device
  mgpu.free %b2, %d2 : memref<32x64xf32>, !mgpu.device
  mgpu.free %b3, %d3 : memref<32x64xf32>, !mgpu.device
  mgpu.free %h0, %d0 : memref<32x32xf32>, !mgpu.device
  mgpu.free %h1, %d1 : memref<32x32xf32>, !mgpu.device
  mgpu.free %h2, %d2 : memref<32x32xf32>, !mgpu.device
  mgpu.free %h3, %d3 : memref<32x32xf32>, !mgpu.device
  mgpu.free %y0, %d0 : memref<32x64xf32>, !mgpu.device
  mgpu.free %y1, %d1 : memref<32x64xf32>, !mgpu.device
  mgpu.free %y2, %d2 : memref<32x64xf32>, !mgpu.device
  mgpu.free %y3, %d3 : memref<32x64xf32>, !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  mgpu.destroy_stream %s2 : !mgpu.stream
  mgpu.destroy_stream %s3 : !mgpu.stream
  return
}
