// RUN: mgpu-tune run %s | FileCheck %s

// A tensor copy of four dimensions, of a view whose dimensions change places: 64 columns of
// each row come to where they were.
// CHECK: alike: 8192
// CHECK-NEXT: not alike: 0

!map = !nvgpu.tensormap.descriptor<tensor = memref<2x2x64x64xf16, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
func.func @main() {
  %ticks = arith.constant 10000000 : index
  %false = arith.constant false
  %n32768 = arith.constant 32768 : index
  %bytes = arith.constant 32768 : i32
  %i31 = arith.constant 31 : i32
  %im1 = arith.constant -1 : i32
  %i5 = arith.constant 5 : i32
  %i0 = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %x = llvm.mlir.constant(1 : i64) : i64
  %f0 = arith.constant 0.0 : f16
  %hs = memref.alloc() : memref<128x128xf16>
  %hd = memref.alloc() : memref<128x128xf16>
  scf.for %i = %c0 to %c128 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %ii = arith.index_cast %i : index to i32
      %fi = arith.sitofp %ii : i32 to f16
      memref.store %fi, %hs[%i, %j] : memref<128x128xf16>
      memref.store %f0, %hd[%i, %j] : memref<128x128xf16>
    }
  }
  %s1 = gpu.wait async
  %src, %s2 = gpu.alloc async [%s1] () : memref<128x128xf16>
  %dst, %s3 = gpu.alloc async [%s2] () : memref<128x128xf16>
  %s4 = gpu.memcpy async [%s3] %src, %hs : memref<128x128xf16>, memref<128x128xf16>
  %s5 = gpu.memcpy async [%s4] %dst, %hd : memref<128x128xf16>, memref<128x128xf16>
  %e = memref.expand_shape %src [[0, 1], [2, 3]] output_shape [2, 64, 2, 64] : memref<128x128xf16> into memref<2x64x2x64xf16>
  %t = memref.transpose %e (a, b, c, d) -> (a, c, b, d) : memref<2x64x2x64xf16> to memref<2x2x64x64xf16, strided<[8192, 64, 128, 1]>>
  %u = memref.cast %t : memref<2x2x64x64xf16, strided<[8192, 64, 128, 1]>> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %u box[%c2, %c2, %c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%a, %b, %c) in (%g0 = %c1, %g1 = %c1, %g2 = %c1) threads(%tx, %ty, %tz) in (%t0 = %c128, %t1 = %c1, %t2 = %c1) dynamic_shared_memory_size %bytes {
    %m = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %v = memref.view %m[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<2x2x64x64xf16, #gpu.address_space<workgroup>>
    %bar = nvgpu.mbarrier.create -> !bar
    %id = gpu.thread_id x
    %idi = arith.index_cast %id : index to i32
    %w = arith.shrui %idi, %i5 : i32
    %ws = nvvm.shfl.sync idx %im1, %w, %i0, %i31 : i32 -> i32
    %first = arith.cmpi eq, %ws, %i0 : i32
    %el = nvvm.elect.sync -> i1
    %me = arith.andi %first, %el : i1
    scf.if %me {
      nvgpu.mbarrier.init %bar[%c0], %c1 : !bar
    }
    %el2 = nvvm.elect.sync -> i1
    %me2 = arith.andi %first, %el2 : i1
    scf.if %me2 {
      nvgpu.mbarrier.arrive.expect_tx %bar[%c0], %n32768 : !bar
      nvgpu.tma.async.load %map[%c0, %c0, %c0, %c0], %bar[%c0] to %v : !map, !bar -> memref<2x2x64x64xf16, #gpu.address_space<workgroup>>
    }
    nvgpu.mbarrier.try_wait.parity %bar[%c0], %false, %ticks : !bar
    scf.for %p = %c0 to %c2 step %c1 {
      scf.for %q = %c0 to %c2 step %c1 {
        %r = arith.muli %p, %c64 : index
        %s = arith.muli %q, %c64 : index
        %sv = memref.subview %v[%p, %q, 0, 0] [1, 1, 64, 64] [1, 1, 1, 1] : memref<2x2x64x64xf16, #gpu.address_space<workgroup>> to memref<64x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>
        %dv = memref.subview %dst[%r, %s] [64, 64] [1, 1] : memref<128x128xf16> to memref<64x64xf16, strided<[128, 1], offset: ?>>
        %bx = gpu.block_dim x
        %y = gpu.thread_id y
        %k0 = arith.muli %y, %bx : index
        %k1 = arith.addi %id, %k0 : index
        %z = arith.cmpi eq, %k1, %c0 : index
        scf.if %z {
          scf.for %i = %c0 to %c64 step %c1 {
            scf.for %j = %c0 to %c64 step %c1 {
              %l = memref.load %sv[%i, %j] : memref<64x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>
              memref.store %l, %dv[%i, %j] : memref<64x64xf16, strided<[128, 1], offset: ?>>
            }
          }
        }
        gpu.barrier
      }
    }
    gpu.terminator
  }
  %s6 = gpu.memcpy async [%s5] %hd, %dst : memref<128x128xf16>, memref<128x128xf16>
  gpu.wait [%s6]
  %bad, %good = scf.for %i = %c0 to %c128 step %c1 iter_args(%e1 = %c0, %k1 = %c0) -> (index, index) {
    %e2, %k2 = scf.for %j = %c0 to %c64 step %c1 iter_args(%e3 = %e1, %k3 = %k1) -> (index, index) {
      %p = memref.load %hd[%i, %j] : memref<128x128xf16>
      %q = memref.load %hs[%i, %j] : memref<128x128xf16>
      %ne = arith.cmpf one, %p, %q : f16
      %e4, %k4 = scf.if %ne -> (index, index) {
        %h = arith.addi %e3, %c1 : index
        scf.yield %h, %k3 : index, index
      } else {
        %h = arith.addi %k3, %c1 : index
        scf.yield %e3, %h : index, index
      }
      scf.yield %e4, %k4 : index, index
    }
    scf.yield %e2, %k2 : index, index
  }
  vector.print str "alike: "
  vector.print %good : index
  vector.print str "not alike: "
  vector.print %bad : index
  return
}
