// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two devices: b = 2 a, summed over both; c = b + neighbour. 1100 elements in
// blocks of 256: the fifth hangs over the end, and a guard keeps it inside.

mgpu.device_config @config #mgpu.device_config<numDevices = 2>

func.func @main(%x: memref<1100xf32>, %out: memref<1100xf32> {mgpu.role = "output"}) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %blocks = arith.constant 5 : index
  %threads = arith.constant 256 : index
  %step = arith.constant 256 : index // from block to block
  %n = arith.constant 1100 : index
  %two = arith.constant 2.0 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  %comm = mgpu.create_communicator %d0, %d1 : !mgpu.device, !mgpu.device -> !mgpu.communicator
  %a0 = mgpu.alloc %d0 : !mgpu.device -> memref<1100xf32>
  %b0 = mgpu.alloc %d0 : !mgpu.device -> memref<1100xf32>
  %c0_ = mgpu.alloc %d0 : !mgpu.device -> memref<1100xf32>
  %a1 = mgpu.alloc %d1 : !mgpu.device -> memref<1100xf32>
  %b1 = mgpu.alloc %d1 : !mgpu.device -> memref<1100xf32>
  %c1_ = mgpu.alloc %d1 : !mgpu.device -> memref<1100xf32>
  mgpu.replicate %x, %host, [%d0, %d1], [%a0, %a1] streams [%s0, %s1] : !mgpu.stream, !mgpu.stream
      : memref<1100xf32>, !mgpu.device, [!mgpu.device, !mgpu.device], [memref<1100xf32>, memref<1100xf32>]
  mgpu.launch %d0 grid(%blocks) block(%threads) stream %s0 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %step : index
    %i = arith.addi %base, %thread : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %v = memref.load %a0[%i] : memref<1100xf32>
      %w = arith.mulf %v, %two : f32
      memref.store %w, %b0[%i] : memref<1100xf32>
    }
    mgpu.terminator
  }
  mgpu.launch %d1 grid(%blocks) block(%threads) stream %s1 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %step : index
    %i = arith.addi %base, %thread : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %v = memref.load %a1[%i] : memref<1100xf32>
      %w = arith.mulf %v, %two : f32
      memref.store %w, %b1[%i] : memref<1100xf32>
    }
    mgpu.terminator
  }
  mgpu.all_reduce %b0, %b0, %comm, sum stream %s0 : !mgpu.stream
      : memref<1100xf32>, memref<1100xf32>, !mgpu.communicator
  mgpu.all_reduce %b1, %b1, %comm, sum stream %s1 : !mgpu.stream
      : memref<1100xf32>, memref<1100xf32>, !mgpu.communicator
  mgpu.launch %d0 grid(%blocks) block(%threads) stream %s0 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %step : index
    %i = arith.addi %base, %thread : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %v = memref.load %b0[%i] : memref<1100xf32>
      %u = memref.load %a0[%i] : memref<1100xf32>
      %w = arith.addf %v, %u : f32
      memref.store %w, %c0_[%i] : memref<1100xf32>
    }
    mgpu.terminator
  }
  mgpu.launch %d1 grid(%blocks) block(%threads) stream %s1 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %step : index
    %i = arith.addi %base, %thread : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %v = memref.load %b1[%i] : memref<1100xf32>
      %u = memref.load %a1[%i] : memref<1100xf32>
      %w = arith.addf %v, %u : f32
      memref.store %w, %c1_[%i] : memref<1100xf32>
    }
    mgpu.terminator
  }
  mgpu.memcpy %out, %c0_, %host, %d0 stream %s0 : !mgpu.stream : memref<1100xf32>, memref<1100xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  return
}
