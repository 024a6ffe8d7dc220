// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mean of each row of a matrix, and then each row without its mean. The
// first kernel is CUDA C++ of its own, rowmean.cu; the second is a body. The
// host target runs @rowMean in place of the file, and the tuner learns from it
// how far the order of the file's sums may move results.

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func private @rowMean(%x: memref<24x300xf32>, %mean: memref<24xf32>,
                           %columns: index) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = gpu.block_id x
  %thread = gpu.thread_id x
  %threads = gpu.block_dim x
  %mine = scf.for %k = %thread to %columns step %threads
      iter_args(%sum = %zero) -> (f32) {
    %v = memref.load %x[%row, %k] : memref<24x300xf32>
    %next = arith.addf %sum, %v : f32
    scf.yield %next : f32
  }
  %all = gpu.all_reduce add %mine uniform {} : (f32) -> f32
  %first = arith.cmpi eq, %thread, %c0 : index
  scf.if %first {
    %bits = arith.index_cast %columns : index to i64
    %count = arith.sitofp %bits : i64 to f32
    %m = arith.divf %all, %count : f32
    memref.store %m, %mean[%row] : memref<24xf32>
  }
  return
}

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
                  reference = @rowMean, tunables = {ITEMS = [4, 1, 2]}, reads = [0], writes = [1]}
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
