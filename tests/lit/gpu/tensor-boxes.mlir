// RUN: mgpu-tune run %s | FileCheck %s

// Boxes of four and five dimensions, loaded and stored: element (i, j, k, l) is
// 1000 i + 100 j + 10 k + l, and each is stored with one added. A kernel without barriers stores
// a box that begins in front of its tensor.
// CHECK: ( 1211, 1212, 1213, 1214 )
// CHECK-NEXT: ( 2321, 2322, 2323, 2324 )
// CHECK-NEXT: ( 0, 0, 0, 0 )
// CHECK-NEXT: ( 7, 7, 7, 7, 0, 0, 0, 0 )

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!four = !nvgpu.tensormap.descriptor<tensor = memref<2x2x2x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!five = !nvgpu.tensormap.descriptor<tensor = memref<1x2x2x2x4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!rows = !nvgpu.tensormap.descriptor<tensor = memref<4x8xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>

memref.global "private" @tile : memref<2x2x2x4xf32, 3> {alignment = 128 : i64}
memref.global "private" @rows : memref<4x8xf16, 3> {alignment = 128 : i64}

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c10 = arith.constant 10 : index
  %c32 = arith.constant 32 : index
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %none = arith.constant dense<0.0> : vector<8xf16>
  %from = memref.alloc() : memref<3x4x3x4xf32>
  %to = memref.alloc() : memref<1x3x4x3x4xf32>
  %last = memref.alloc() : memref<6x8xf16>
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      scf.for %k = %c0 to %c3 step %c1 {
        scf.for %l = %c0 to %c4 step %c1 {
          %a = arith.muli %i, %c10 : index
          %b = arith.addi %a, %j : index
          %c = arith.muli %b, %c10 : index
          %d = arith.addi %c, %k : index
          %e = arith.muli %d, %c10 : index
          %f = arith.addi %e, %l : index
          %n = arith.index_cast %f : index to i32
          %v = arith.sitofp %n : i32 to f32
          memref.store %v, %from[%i, %j, %k, %l] : memref<3x4x3x4xf32>
        }
        vector.store %zeros, %to[%c0, %i, %j, %k, %c0] : memref<1x3x4x3x4xf32>, vector<4xf32>
      }
    }
  }
  scf.for %i = %c0 to %c4 step %c1 {
    vector.store %none, %last[%i, %c0] : memref<6x8xf16>, vector<8xf16>
  }
  %uf = memref.cast %from : memref<3x4x3x4xf32> to memref<*xf32>
  %ut = memref.cast %to : memref<1x3x4x3x4xf32> to memref<*xf32>
  %ul = memref.cast %last : memref<6x8xf16> to memref<*xf16>
  %mf = nvgpu.tma.create.descriptor %uf box[%c2, %c2, %c2, %c4] : memref<*xf32> -> !four
  %mt = nvgpu.tma.create.descriptor %ut box[%c1, %c2, %c2, %c2, %c4] : memref<*xf32> -> !five
  %ml = nvgpu.tma.create.descriptor %ul box[%c4, %c8] : memref<*xf16> -> !rows
  // Boxes from rows 1 and 2, and 1 and 2 of the planes.
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %ticks = arith.constant 10000000 : index
    %false = arith.constant false
    %one = arith.constant 1.0 : f32
    %bytes = arith.constant 128 : index
    %tile = memref.get_global @tile : memref<2x2x2x4xf32, 3>
    %b = nvgpu.mbarrier.create -> !barrier
    %elected = nvvm.elect.sync -> i1
    nvgpu.mbarrier.init %b[%c0], %c1, predicate = %elected : !barrier
    nvgpu.mbarrier.arrive.expect_tx %b[%c0], %bytes, predicate = %elected : !barrier
    nvgpu.tma.async.load %mf[%c0, %c1, %c2, %c1], %b[%c0] to %tile, predicate = %elected : !four, !barrier -> memref<2x2x2x4xf32, 3>
    nvgpu.mbarrier.try_wait.parity %b[%c0], %false, %ticks : !barrier
    // Each thread has an element.
    %l = arith.remui %tx, %c4 : index
    %r0 = arith.divui %tx, %c4 : index
    %k = arith.remui %r0, %c2 : index
    %r1 = arith.divui %r0, %c2 : index
    %j = arith.remui %r1, %c2 : index
    %i = arith.divui %r1, %c2 : index
    %v = memref.load %tile[%i, %j, %k, %l] : memref<2x2x2x4xf32, 3>
    %w = arith.addf %v, %one : f32
    memref.store %w, %tile[%i, %j, %k, %l] : memref<2x2x2x4xf32, 3>
    gpu.barrier
    %whole = memref.expand_shape %tile [[0, 1], [2], [3], [4]] output_shape [1, 2, 2, 2, 4] : memref<2x2x2x4xf32, 3> into memref<1x2x2x2x4xf32, 3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvgpu.tma.async.store %whole to %mt[%c0, %c1, %c2, %c1, %c0], predicate = %elected : memref<1x2x2x2x4xf32, 3> -> !five
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0
    gpu.terminator
  }
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1) {
    %seven = arith.constant 7.0 : f16
    %rows = memref.get_global @rows : memref<4x8xf16, 3>
    %i = arith.divui %tx, %c8 : index
    %j = arith.remui %tx, %c8 : index
    memref.store %seven, %rows[%i, %j] : memref<4x8xf16, 3>
    gpu.barrier
    %is = arith.cmpi eq, %tx, %c0 : index
    // Half of each row lies in front of the tensor, and half in it.
    %before = arith.constant -4 : index
    scf.if %is {
      nvgpu.tma.async.store %rows to %ml[%before, %c0] : memref<4x8xf16, 3> -> !rows
    }
    gpu.terminator
  }
  %p = vector.load %to[%c0, %c1, %c2, %c1, %c0] : memref<1x3x4x3x4xf32>, vector<4xf32>
  vector.print %p : vector<4xf32>
  %q = vector.load %to[%c0, %c2, %c3, %c2, %c0] : memref<1x3x4x3x4xf32>, vector<4xf32>
  vector.print %q : vector<4xf32>
  %z = vector.load %to[%c0, %c0, %c2, %c1, %c0] : memref<1x3x4x3x4xf32>, vector<4xf32>
  vector.print %z : vector<4xf32>
  %s = vector.load %last[%c3, %c0] : memref<6x8xf16>, vector<8xf16>
  %t = arith.extf %s : vector<8xf16> to vector<8xf32>
  vector.print %t : vector<8xf32>
  return
}
