// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel that writes where an index from memory says: run --guard sees where that is past the buffer.
// RUN: mgpu-tune run %s --arg at=3 --guard
// RUN: %{exits} 1 mgpu-tune run %s --arg at=70 --guard 2>&1 | FileCheck %s
// RUN: %{exits} 1 mgpu-tune run %s --arg at=-2 --guard 2>&1 | FileCheck %s --check-prefix=BEFORE
// RUN: %{exits} 2 mgpu-tune run %s --arg at=3 --guard --distributed 2>&1 | FileCheck %s --check-prefix=RANKS

// CHECK: --guard: the program wrote outside of its buffers, 24 bytes after buffer 'a'; compare the kernels' indices with their buffers' sizes
// BEFORE: wrote outside of its buffers, {{[0-9]+}} bytes {{before the first buffer|after buffer 'place'}}
// RANKS: --guard watches the memory of one process

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%at: memref<1xi32>, %out: memref<64xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %one = arith.constant 1.0 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %place = mgpu.alloc %d0 : !mgpu.device -> memref<1xi32>
  %a = mgpu.alloc %d0 : !mgpu.device -> memref<64xf32>
  mgpu.memcpy %place, %at, %d0, %host : memref<1xi32>, memref<1xi32>, !mgpu.device, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c64) {
    %i = gpu.thread_id x
    memref.store %one, %a[%i] : memref<64xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c1) {
    %n = memref.load %place[%c0] : memref<1xi32>
    %k = arith.index_cast %n : i32 to index
    memref.store %one, %a[%k] : memref<64xf32>
  }
  mgpu.memcpy %out, %a, %host, %d0 : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
