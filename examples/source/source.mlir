// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mean of each row of a matrix, and then each row without its mean. The
// first kernel is CUDA C++ of its own, rowmean.cu; the second is a body. So
// the program runs on cards only (--target cuda).

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%x: memref<24x300xf32>, %centred: memref<24x300xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 24 : index
  %columns = arith.constant 300 : index
  %threads = arith.constant 128 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %b = mgpu.alloc %d : !mgpu.device -> memref<24x300xf32>
  %mean = mgpu.alloc %d : !mgpu.device -> memref<24xf32>
  mgpu.memcpy %b, %x, %d, %host : memref<24x300xf32>, memref<24x300xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d args(%b, %mean, %columns : memref<24x300xf32>, memref<24xf32>, index)
      grid(%rows) block(%threads)
      attributes {source = "rowmean.cu", entry = "rowMean",
                  tunables = {ITEMS = [4, 1, 2]}, reads = [0], writes = [1]}
  mgpu.launch %d grid(%rows) block(%columns) {
    %row = gpu.block_id x
    %column = gpu.thread_id x
    %v = memref.load %b[%row, %column] : memref<24x300xf32>
    %m = memref.load %mean[%row] : memref<24xf32>
    %centre = arith.subf %v, %m : f32
    memref.store %centre, %b[%row, %column] : memref<24x300xf32>
  }
  mgpu.memcpy %centred, %b, %host, %d : memref<24x300xf32>, memref<24x300xf32>, !mgpu.device, !mgpu.device
  mgpu.free %mean, %d : memref<24xf32>, !mgpu.device
  mgpu.free %b, %d : memref<24x300xf32>, !mgpu.device
  return
}
