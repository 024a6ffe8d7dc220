// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// y = a * x + y: scatter over four devices, one launch on each, gather.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

func.func @main(%a: f32, %x: memref<1024xf32>, %y: memref<1024xf32>) {
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
  %blocks = arith.constant 4 : index
  %threads = arith.constant 64 : index

  %x0 = mgpu.alloc %d0 : !mgpu.device -> memref<256xf32>
  %x1 = mgpu.alloc %d1 : !mgpu.device -> memref<256xf32>
  %x2 = mgpu.alloc %d2 : !mgpu.device -> memref<256xf32>
  %x3 = mgpu.alloc %d3 : !mgpu.device -> memref<256xf32>
  %y0 = mgpu.alloc %d0 : !mgpu.device -> memref<256xf32>
  %y1 = mgpu.alloc %d1 : !mgpu.device -> memref<256xf32>
  %y2 = mgpu.alloc %d2 : !mgpu.device -> memref<256xf32>
  %y3 = mgpu.alloc %d3 : !mgpu.device -> memref<256xf32>
  mgpu.scatter %x, %host, [%x0, %x1, %x2, %x3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<1024xf32>, !mgpu.device, [memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.scatter %y, %host, [%y0, %y1, %y2, %y3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<1024xf32>, !mgpu.device, [memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]

  mgpu.launch %d0 grid(%blocks) block(%threads) stream %s0 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %threads : index
    %i = arith.addi %base, %thread : index
    %xi = memref.load %x0[%i] : memref<256xf32>
    %yi = memref.load %y0[%i] : memref<256xf32>
    %ax = arith.mulf %a, %xi : f32
    %sum = arith.addf %ax, %yi : f32
    memref.store %sum, %y0[%i] : memref<256xf32>
  }
  mgpu.launch %d1 grid(%blocks) block(%threads) stream %s1 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %threads : index
    %i = arith.addi %base, %thread : index
    %xi = memref.load %x1[%i] : memref<256xf32>
    %yi = memref.load %y1[%i] : memref<256xf32>
    %ax = arith.mulf %a, %xi : f32
    %sum = arith.addf %ax, %yi : f32
    memref.store %sum, %y1[%i] : memref<256xf32>
  }
  mgpu.launch %d2 grid(%blocks) block(%threads) stream %s2 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %threads : index
    %i = arith.addi %base, %thread : index
    %xi = memref.load %x2[%i] : memref<256xf32>
    %yi = memref.load %y2[%i] : memref<256xf32>
    %ax = arith.mulf %a, %xi : f32
    %sum = arith.addf %ax, %yi : f32
    memref.store %sum, %y2[%i] : memref<256xf32>
  }
  mgpu.launch %d3 grid(%blocks) block(%threads) stream %s3 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %threads : index
    %i = arith.addi %base, %thread : index
    %xi = memref.load %x3[%i] : memref<256xf32>
    %yi = memref.load %y3[%i] : memref<256xf32>
    %ax = arith.mulf %a, %xi : f32
    %sum = arith.addf %ax, %yi : f32
    memref.store %sum, %y3[%i] : memref<256xf32>
  }

  mgpu.gather %y, %host, [%y0, %y1, %y2, %y3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<1024xf32>, !mgpu.device, [memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.sync_stream %s2 : !mgpu.stream
  mgpu.sync_stream %s3 : !mgpu.stream
  mgpu.free %x0, %d0 : memref<256xf32>, !mgpu.device
  mgpu.free %x1, %d1 : memref<256xf32>, !mgpu.device
  mgpu.free %x2, %d2 : memref<256xf32>, !mgpu.device
  mgpu.free %x3, %d3 : memref<256xf32>, !mgpu.device
  mgpu.free %y0, %d0 : memref<256xf32>, !mgpu.device
  mgpu.free %y1, %d1 : memref<256xf32>, !mgpu.device
  mgpu.free %y2, %d2 : memref<256xf32>, !mgpu.device
  mgpu.free %y3, %d3 : memref<256xf32>, !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  mgpu.destroy_stream %s2 : !mgpu.stream
  mgpu.destroy_stream %s3 : !mgpu.stream
  return
}
