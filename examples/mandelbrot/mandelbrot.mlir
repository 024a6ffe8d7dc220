// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Iterations until |z| > 2 for z = z^2 + c, at most 64, over a 96 x 128 grid of c.
// Rows in the middle cost more, so the devices in the middle get fewer of them.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

func.func @main(%re: memref<128xf32>, %im: memref<96xf32>,
                %counts: memref<96x128xi32> {mgpu.role = "output"}) {
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
  %c18 = arith.constant 18 : index
  %c30 = arith.constant 30 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %four = arith.constant 4.0 : f32
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32

  %re0 = mgpu.alloc %d0 : !mgpu.device -> memref<128xf32>
  %re1 = mgpu.alloc %d1 : !mgpu.device -> memref<128xf32>
  %re2 = mgpu.alloc %d2 : !mgpu.device -> memref<128xf32>
  %re3 = mgpu.alloc %d3 : !mgpu.device -> memref<128xf32>
  %im0 = mgpu.alloc %d0 : !mgpu.device -> memref<30xf32>
  %im1 = mgpu.alloc %d1 : !mgpu.device -> memref<18xf32>
  %im2 = mgpu.alloc %d2 : !mgpu.device -> memref<18xf32>
  %im3 = mgpu.alloc %d3 : !mgpu.device -> memref<30xf32>
  %n0 = mgpu.alloc %d0 : !mgpu.device -> memref<30x128xi32>
  %n1 = mgpu.alloc %d1 : !mgpu.device -> memref<18x128xi32>
  %n2 = mgpu.alloc %d2 : !mgpu.device -> memref<18x128xi32>
  %n3 = mgpu.alloc %d3 : !mgpu.device -> memref<30x128xi32>
  mgpu.replicate %re, %host, [%d0, %d1, %d2, %d3], [%re0, %re1, %re2, %re3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream
      : memref<128xf32>, !mgpu.device, [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device], [memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>]
  mgpu.uneven_scatter %im, %host, [%im0, %im1, %im2, %im3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream sliceSizes = [30, 18, 18, 30] axis = 0
      : memref<96xf32>, !mgpu.device, [memref<30xf32>, memref<18xf32>, memref<18xf32>, memref<30xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]

  mgpu.launch %d0 grid(%c30) block(%c128) stream %s0 {
    %row = gpu.block_id x
    %column = gpu.thread_id x
    %cr = memref.load %re0[%column] : memref<128xf32>
    %ci = memref.load %im0[%row] : memref<30xf32>
    %r:3 = scf.for %k = %c0 to %c64 step %c1
        iter_args(%zr = %zero, %zi = %zero, %n = %none) -> (f32, f32, i32) {
      %zr2 = arith.mulf %zr, %zr : f32
      %zi2 = arith.mulf %zi, %zi : f32
      %norm = arith.addf %zr2, %zi2 : f32
      %inside = arith.cmpf ole, %norm, %four : f32
      %difference = arith.subf %zr2, %zi2 : f32
      %nextR = arith.addf %difference, %cr : f32
      %product = arith.mulf %zr, %zi : f32
      %twice = arith.mulf %product, %two : f32
      %nextI = arith.addf %twice, %ci : f32
      %nextN = arith.addi %n, %one : i32
      // A point that escaped keeps its z, which stays outside.
      %outR = arith.select %inside, %nextR, %zr : f32
      %outI = arith.select %inside, %nextI, %zi : f32
      %outN = arith.select %inside, %nextN, %n : i32
      scf.yield %outR, %outI, %outN : f32, f32, i32
    }
    memref.store %r#2, %n0[%row, %column] : memref<30x128xi32>
  }
  mgpu.launch %d1 grid(%c18) block(%c128) stream %s1 {
    %row = gpu.block_id x
    %column = gpu.thread_id x
    %cr = memref.load %re1[%column] : memref<128xf32>
    %ci = memref.load %im1[%row] : memref<18xf32>
    %r:3 = scf.for %k = %c0 to %c64 step %c1
        iter_args(%zr = %zero, %zi = %zero, %n = %none) -> (f32, f32, i32) {
      %zr2 = arith.mulf %zr, %zr : f32
      %zi2 = arith.mulf %zi, %zi : f32
      %norm = arith.addf %zr2, %zi2 : f32
      %inside = arith.cmpf ole, %norm, %four : f32
      %difference = arith.subf %zr2, %zi2 : f32
      %nextR = arith.addf %difference, %cr : f32
      %product = arith.mulf %zr, %zi : f32
      %twice = arith.mulf %product, %two : f32
      %nextI = arith.addf %twice, %ci : f32
      %nextN = arith.addi %n, %one : i32
      // A point that escaped keeps its z, which stays outside.
      %outR = arith.select %inside, %nextR, %zr : f32
      %outI = arith.select %inside, %nextI, %zi : f32
      %outN = arith.select %inside, %nextN, %n : i32
      scf.yield %outR, %outI, %outN : f32, f32, i32
    }
    memref.store %r#2, %n1[%row, %column] : memref<18x128xi32>
  }
  mgpu.launch %d2 grid(%c18) block(%c128) stream %s2 {
    %row = gpu.block_id x
    %column = gpu.thread_id x
    %cr = memref.load %re2[%column] : memref<128xf32>
    %ci = memref.load %im2[%row] : memref<18xf32>
    %r:3 = scf.for %k = %c0 to %c64 step %c1
        iter_args(%zr = %zero, %zi = %zero, %n = %none) -> (f32, f32, i32) {
      %zr2 = arith.mulf %zr, %zr : f32
      %zi2 = arith.mulf %zi, %zi : f32
      %norm = arith.addf %zr2, %zi2 : f32
      %inside = arith.cmpf ole, %norm, %four : f32
      %difference = arith.subf %zr2, %zi2 : f32
      %nextR = arith.addf %difference, %cr : f32
      %product = arith.mulf %zr, %zi : f32
      %twice = arith.mulf %product, %two : f32
      %nextI = arith.addf %twice, %ci : f32
      %nextN = arith.addi %n, %one : i32
      // A point that escaped keeps its z, which stays outside.
      %outR = arith.select %inside, %nextR, %zr : f32
      %outI = arith.select %inside, %nextI, %zi : f32
      %outN = arith.select %inside, %nextN, %n : i32
      scf.yield %outR, %outI, %outN : f32, f32, i32
    }
    memref.store %r#2, %n2[%row, %column] : memref<18x128xi32>
  }
  mgpu.launch %d3 grid(%c30) block(%c128) stream %s3 {
    %row = gpu.block_id x
    %column = gpu.thread_id x
    %cr = memref.load %re3[%column] : memref<128xf32>
    %ci = memref.load %im3[%row] : memref<30xf32>
    %r:3 = scf.for %k = %c0 to %c64 step %c1
        iter_args(%zr = %zero, %zi = %zero, %n = %none) -> (f32, f32, i32) {
      %zr2 = arith.mulf %zr, %zr : f32
      %zi2 = arith.mulf %zi, %zi : f32
      %norm = arith.addf %zr2, %zi2 : f32
      %inside = arith.cmpf ole, %norm, %four : f32
      %difference = arith.subf %zr2, %zi2 : f32
      %nextR = arith.addf %difference, %cr : f32
      %product = arith.mulf %zr, %zi : f32
      %twice = arith.mulf %product, %two : f32
      %nextI = arith.addf %twice, %ci : f32
      %nextN = arith.addi %n, %one : i32
      // A point that escaped keeps its z, which stays outside.
      %outR = arith.select %inside, %nextR, %zr : f32
      %outI = arith.select %inside, %nextI, %zi : f32
      %outN = arith.select %inside, %nextN, %n : i32
      scf.yield %outR, %outI, %outN : f32, f32, i32
    }
    memref.store %r#2, %n3[%row, %column] : memref<30x128xi32>
  }

  mgpu.gather %counts, %host, [%n0, %n1, %n2, %n3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<96x128xi32>, !mgpu.device, [memref<30x128xi32>, memref<18x128xi32>, memref<18x128xi32>, memref<30x128xi32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.sync_stream %s2 : !mgpu.stream
  mgpu.sync_stream %s3 : !mgpu.stream
  mgpu.free %re0, %d0 : memref<128xf32>, !mgpu.device
  mgpu.free %re1, %d1 : memref<128xf32>, !mgpu.device
  mgpu.free %re2, %d2 : memref<128xf32>, !mgpu.device
  mgpu.free %re3, %d3 : memref<128xf32>, !mgpu.device
  mgpu.free %im0, %d0 : memref<30xf32>, !mgpu.device
  mgpu.free %im1, %d1 : memref<18xf32>, !mgpu.device
  mgpu.free %im2, %d2 : memref<18xf32>, !mgpu.device
  mgpu.free %im3, %d3 : memref<30xf32>, !mgpu.device
  mgpu.free %n0, %d0 : memref<30x128xi32>, !mgpu.device
  mgpu.free %n1, %d1 : memref<18x128xi32>, !mgpu.device
  mgpu.free %n2, %d2 : memref<18x128xi32>, !mgpu.device
  mgpu.free %n3, %d3 : memref<30x128xi32>, !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  mgpu.destroy_stream %s2 : !mgpu.stream
  mgpu.destroy_stream %s3 : !mgpu.stream
  return
}
