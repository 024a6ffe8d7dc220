// RUN: mgpu-tune run %s | FileCheck %s

// Tensor copies: rows whose parts of 16 bytes change places, a box that reaches over the end
// of its tensor, a copy back, and the memory of a global. Element (i, j) is 100 i + j.
// CHECK: row 1 begins with 104.0, part 2 with 112.0
// CHECK: inside 238.0, behind 0.0, below 0.0
// CHECK: ( 100, 101, 102, 103, 104, 105 )
// CHECK-NEXT: ( 700, 701, 702, 703, 704, 705 )

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!swizzled = !nvgpu.tensormap.descriptor<tensor = memref<8x32xf32, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!plain = !nvgpu.tensormap.descriptor<tensor = memref<4x16xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>

memref.global "private" @tile : memref<8x32xf32, 3>
memref.global "private" @corner : memref<4x16xf32, 3>

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c40 = arith.constant 40 : index
  %hundred = arith.constant 100 : index
  %from = memref.alloc() : memref<8x40xf32>
  scf.for %i = %c0 to %c8 step %c1 {
    scf.for %j = %c0 to %c40 step %c1 {
      %a = arith.muli %i, %hundred : index
      %b = arith.addi %a, %j : index
      %n = arith.index_cast %b : index to i32
      %f = arith.sitofp %n : i32 to f32
      memref.store %f, %from[%i, %j] : memref<8x40xf32>
    }
  }
  %source = gpu.alloc () : memref<8x40xf32>
  %target = gpu.alloc () : memref<8x32xf32>
  gpu.memcpy %source, %from : memref<8x40xf32>, memref<8x40xf32>
  // Three of the rows.
  %part = memref.subview %source[0, 0] [3, 40] [1, 1] : memref<8x40xf32> to memref<3x40xf32, strided<[40, 1]>>
  %us = memref.cast %source : memref<8x40xf32> to memref<*xf32>
  %ut = memref.cast %target : memref<8x32xf32> to memref<*xf32>
  %up = memref.cast %part : memref<3x40xf32, strided<[40, 1]>> to memref<*xf32>
  %ms = nvgpu.tma.create.descriptor %us box[%c8, %c32] : memref<*xf32> -> !swizzled
  %mt = nvgpu.tma.create.descriptor %ut box[%c8, %c32] : memref<*xf32> -> !swizzled
  %mp = nvgpu.tma.create.descriptor %up box[%c4, %c16] : memref<*xf32> -> !plain
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %c6 = arith.constant 6 : index
    %c14 = arith.constant 14 : index
    %c3 = arith.constant 3 : index
    %tile = memref.get_global @tile : memref<8x32xf32, 3>
    %corner = memref.get_global @corner : memref<4x16xf32, 3>
    %b = nvgpu.mbarrier.create -> !barrier
    %elected = nvvm.elect.sync -> i1
    nvgpu.mbarrier.init %b[%c0], %c1, predicate = %elected : !barrier
    %bytes = arith.constant 1280 : index
    nvgpu.mbarrier.arrive.expect_tx %b[%c0], %bytes, predicate = %elected : !barrier
    nvgpu.tma.async.load %ms[%c0, %c0], %b[%c0] to %tile, predicate = %elected : !swizzled, !barrier -> memref<8x32xf32, 3>
    nvgpu.tma.async.load %mp[%c32, %c2], %b[%c0] to %corner, predicate = %elected : !plain, !barrier -> memref<4x16xf32, 3>
    nvgpu.mbarrier.try_wait.parity %b[%c0], %false, %ticks : !barrier
    nvgpu.tma.async.store %tile to %mt[%c0, %c0], predicate = %elected : memref<8x32xf32, 3> -> !swizzled
    scf.if %elected {
      %v0 = memref.load %tile[%c1, %c0] : memref<8x32xf32, 3>
      %v1 = memref.load %tile[%c1, %c8] : memref<8x32xf32, 3>
      gpu.printf "row 1 begins with %.1f, part 2 with %.1f\n", %v0, %v1 : f32, f32
      %v2 = memref.load %corner[%c0, %c6] : memref<4x16xf32, 3>
      %v3 = memref.load %corner[%c0, %c14] : memref<4x16xf32, 3>
      %v4 = memref.load %corner[%c3, %c0] : memref<4x16xf32, 3>
      gpu.printf "inside %.1f, behind %.1f, below %.1f\n", %v2, %v3, %v4 : f32, f32, f32
    }
    gpu.terminator
  }
  %to = memref.alloc() : memref<8x32xf32>
  gpu.memcpy %to, %target : memref<8x32xf32>, memref<8x32xf32>
  %row1 = vector.load %to[%c1, %c0] : memref<8x32xf32>, vector<6xf32>
  vector.print %row1 : vector<6xf32>
  %row7 = vector.load %to[%c7, %c0] : memref<8x32xf32>, vector<6xf32>
  vector.print %row7 : vector<6xf32>
  return
}
