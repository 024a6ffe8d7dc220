// RUN: mgpu-tune run %s | FileCheck %s

// A product of a warpgroup: tensor copies in swizzled rows, barriers in memory, sums that
// a loop carries, and a store of fragments where the tiles were.
// CHECK: 8192 right, 0 wrong

!barriers = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!mapA = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!mapB = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!sums = !nvgpu.warpgroup.accumulator<fragmented = vector<64x128xf32>>
#shared = #gpu.address_space<workgroup>

memref.global "private" @tiles : memref<0xf16, 3> {alignment = 16 : i64}
memref.global "private" @result : memref<0xf32, 3> {alignment = 16 : i64}

func.func private @number(%i: index, %j: index) -> f16 {
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : index
  %three = arith.constant 3 : i32
  %x = arith.muli %i, %c3 : index
  %s = arith.addi %x, %j : index
  %r = arith.remui %s, %c7 : index
  %n = arith.index_cast %r : index to i32
  %m = arith.subi %n, %three : i32
  %f = arith.sitofp %m : i32 to f16
  return %f : f16
}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %bytes = arith.constant 49152 : i32
  %zero = arith.constant 0.0 : f32
  %ha = memref.alloc() : memref<64x128xf16>
  %hb = memref.alloc() : memref<128x128xf16>
  %hd = memref.alloc() : memref<64x128xf32>
  %want = memref.alloc() : memref<64x128xf32>
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      %v = func.call @number(%i, %j) : (index, index) -> f16
      memref.store %v, %ha[%i, %j] : memref<64x128xf16>
    }
  }
  scf.for %i = %c0 to %c128 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      %v = func.call @number(%j, %i) : (index, index) -> f16
      memref.store %v, %hb[%i, %j] : memref<128x128xf16>
    }
  }
  linalg.fill ins(%zero : f32) outs(%want : memref<64x128xf32>)

  %t0 = gpu.wait async
  %a, %t1 = gpu.alloc async [%t0] () : memref<64x128xf16>
  %b, %t2 = gpu.alloc async [%t1] () : memref<128x128xf16>
  %d, %t3 = gpu.alloc async [%t2] () : memref<64x128xf32>
  %t4 = gpu.memcpy async [%t3] %a, %ha : memref<64x128xf16>, memref<64x128xf16>
  %t5 = gpu.memcpy async [%t4] %b, %hb : memref<128x128xf16>, memref<128x128xf16>
  gpu.wait [%t5]
  %ua = memref.cast %a : memref<64x128xf16> to memref<*xf16>
  %ub = memref.cast %b : memref<128x128xf16> to memref<*xf16>
  %ma = nvgpu.tma.create.descriptor %ua box[%c64, %c64] : memref<*xf16> -> !mapA
  %mb = nvgpu.tma.create.descriptor %ub box[%c64, %c64] : memref<*xf16> -> !mapB
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c128, %sy = %c1, %sz = %c1)
             dynamic_shared_memory_size %bytes {
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c32 = arith.constant 32 : index
    %c8192 = arith.constant 8192 : index
    %c16384 = arith.constant 16384 : index
    %c24576 = arith.constant 24576 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant 0 : i1
    %t = gpu.thread_id x
    %first = arith.cmpi eq, %t, %c0 : index
    %memory = gpu.dynamic_shared_memory : memref<?xi8, #shared>
    %tiles = memref.get_global @tiles : memref<0xf16, 3>
    %tilesA = memref.reinterpret_cast %tiles to offset: [0], sizes: [2, 64, 64], strides: [4096, 64, 1] : memref<0xf16, 3> to memref<2x64x64xf16, 3>
    %barrier = nvgpu.mbarrier.create -> !barriers
    nvgpu.mbarrier.init %barrier[%c0], %c1, predicate = %first : !barriers
    nvgpu.mbarrier.init %barrier[%c1], %c1, predicate = %first : !barriers
    nvgpu.tma.prefetch.descriptor %ma : !mapA
    scf.for %k = %c0 to %c2 step %c1 {
      %at = arith.muli %k, %c64 : index
      %ofA = arith.muli %k, %c8192 : index
      %pair = arith.muli %k, %c16384 : index
      %ofB = arith.addi %pair, %c16384 : index
      %ofB2 = arith.addi %pair, %c24576 : index
      %sa = memref.view %memory[%ofA][] : memref<?xi8, #shared> to memref<64x64xf16, #shared>
      %sb = memref.view %memory[%ofB][] : memref<?xi8, #shared> to memref<64x64xf16, #shared>
      %sb2 = memref.view %memory[%ofB2][] : memref<?xi8, #shared> to memref<64x64xf16, #shared>
      nvgpu.mbarrier.arrive.expect_tx %barrier[%k], %c24576, predicate = %first : !barriers
      nvgpu.tma.async.load %ma[%at, %c0], %barrier[%k] to %sa, predicate = %first : !mapA, !barriers -> memref<64x64xf16, #shared>
      nvgpu.tma.async.load %mb[%c0, %at], %barrier[%k] to %sb, predicate = %first : !mapB, !barriers -> memref<64x64xf16, #shared>
      nvgpu.tma.async.load %mb[%c64, %at], %barrier[%k] to %sb2, predicate = %first : !mapB, !barriers -> memref<64x64xf16, #shared>
    }
    %none = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<64x128xf32>>
    %all = scf.for %k = %c0 to %c2 step %c1 iter_args(%before = %none) -> (!sums) {
      nvgpu.mbarrier.try_wait.parity %barrier[%k], %phase, %ticks : !barriers
      %sa = memref.subview %tilesA[%k, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, 3> to memref<64x64xf16, strided<[64, 1], offset: ?>, 3>
      %pair = arith.muli %k, %c16384 : index
      %ofB = arith.addi %pair, %c16384 : index
      %sb = memref.view %memory[%ofB][] : memref<?xi8, #shared> to memref<64x128xf16, #shared>
      %da = nvgpu.warpgroup.generate.descriptor %sa, %ma : memref<64x64xf16, strided<[64, 1], offset: ?>, 3>, !mapA -> <tensor = memref<64x64xf16, 3>>
      %db = nvgpu.warpgroup.generate.descriptor %sb, %mb : memref<64x128xf16, #shared>, !mapB -> <tensor = memref<64x128xf16, #shared>>
      %after = nvgpu.warpgroup.mma %da, %db, %before {transposeB} : <tensor = memref<64x64xf16, 3>>, <tensor = memref<64x128xf16, #shared>>, !sums -> !sums
      scf.yield %after : !sums
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    %memory32 = memref.get_global @result : memref<0xf32, 3>
    %tile = memref.reinterpret_cast %memory32 to offset: [0], sizes: [64, 128], strides: [128, 1] : memref<0xf32, 3> to memref<64x128xf32, 3>
    nvgpu.warpgroup.mma.store %all, %tile : !sums to memref<64x128xf32, 3>
    %warp = arith.divui %t, %c32 : index
    %lane = arith.remui %t, %c32 : index
    %column = arith.muli %lane, %c4 : index
    scf.for %row = %warp to %c64 step %c4 {
      %v = vector.load %tile[%row, %column] : memref<64x128xf32, 3>, vector<4xf32>
      vector.store %v, %d[%row, %column] : memref<64x128xf32>, vector<4xf32>
    }
    gpu.terminator
  }
  %t6 = gpu.memcpy async [%t0] %hd, %d : memref<64x128xf32>, memref<64x128xf32>
  gpu.wait [%t6]

  linalg.matmul ins(%ha, %hb : memref<64x128xf16>, memref<128x128xf16>) outs(%want : memref<64x128xf32>)
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %right, %wrong = scf.for %i = %c0 to %c64 step %c1 iter_args(%r0 = %none, %w0 = %none) -> (i32, i32) {
    %r1, %w1 = scf.for %j = %c0 to %c128 step %c1 iter_args(%r2 = %r0, %w2 = %w0) -> (i32, i32) {
      %x = memref.load %want[%i, %j] : memref<64x128xf32>
      %y = memref.load %hd[%i, %j] : memref<64x128xf32>
      %same = arith.cmpf oeq, %x, %y : f32
      %r3, %w3 = scf.if %same -> (i32, i32) {
        %r4 = arith.addi %r2, %one : i32
        scf.yield %r4, %w2 : i32, i32
      } else {
        %w4 = arith.addi %w2, %one : i32
        scf.yield %r2, %w4 : i32, i32
      }
      scf.yield %r3, %w3 : i32, i32
    }
    scf.yield %r1, %w1 : i32, i32
  }
  vector.print %right : i32 punctuation <no_punctuation>
  vector.print str " right, "
  vector.print %wrong : i32 punctuation <no_punctuation>
  vector.print str " wrong\n"
  return
}
