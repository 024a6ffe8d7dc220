// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that do nothing but move their data: bench-cuda measures them beside the
// GPU's own copy, in the shapes of their spaces. 256 MiB an array, five times what
// the largest cache of a GPU holds; examples.py --bundle may make it smaller.
mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%hx: memref<67108864xf32>, %hy: memref<67108864xf32>, %hz: memref<67108864xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %s = mgpu.create_stream %d : !mgpu.device -> !mgpu.stream
  %blocks = arith.constant 262144 : index
  %threads = arith.constant 256 : index
  %a = arith.constant 2.5 : f32
  %x = mgpu.alloc %d : !mgpu.device -> memref<67108864xf32>
  %y = mgpu.alloc %d : !mgpu.device -> memref<67108864xf32>
  %z = mgpu.alloc %d : !mgpu.device -> memref<67108864xf32>
  mgpu.memcpy %x, %hx, %d, %host : memref<67108864xf32>, memref<67108864xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %y, %hy, %d, %host : memref<67108864xf32>, memref<67108864xf32>, !mgpu.device, !mgpu.device

  // One array read, one written.
  mgpu.launch %d grid(%blocks) block(%threads) stream %s {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %threads : index
    %i = arith.addi %base, %thread : index
    %v = memref.load %x[%i] : memref<67108864xf32>
    %r = arith.mulf %a, %v : f32
    memref.store %r, %z[%i] : memref<67108864xf32>
  }
  // Two read, one written.
  mgpu.launch %d grid(%blocks) block(%threads) stream %s {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %threads : index
    %i = arith.addi %base, %thread : index
    %v = memref.load %x[%i] : memref<67108864xf32>
    %w = memref.load %y[%i] : memref<67108864xf32>
    %r = arith.addf %v, %w : f32
    memref.store %r, %z[%i] : memref<67108864xf32>
  }
  // Two read, of which one is written.
  mgpu.launch %d grid(%blocks) block(%threads) stream %s {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %threads : index
    %i = arith.addi %base, %thread : index
    %v = memref.load %x[%i] : memref<67108864xf32>
    %w = memref.load %y[%i] : memref<67108864xf32>
    %m = arith.mulf %a, %v : f32
    %r = arith.addf %m, %w : f32
    memref.store %r, %y[%i] : memref<67108864xf32>
  }
  mgpu.sync_stream %s : !mgpu.stream
  mgpu.memcpy %hz, %z, %host, %d : memref<67108864xf32>, memref<67108864xf32>, !mgpu.device, !mgpu.device
  mgpu.destroy_stream %s : !mgpu.stream
  mgpu.free %x, %d : memref<67108864xf32>, !mgpu.device
  mgpu.free %y, %d : memref<67108864xf32>, !mgpu.device
  mgpu.free %z, %d : memref<67108864xf32>, !mgpu.device
  return
}
