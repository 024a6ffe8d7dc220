// RUN: mgpu-tune run %s | FileCheck %s

// Boxes of 64 columns are 128 bytes a row in workgroup memory, wherever they begin there.
// CHECK: {{^}}0 1 2 3 4 5 6 7 17 16 19 18 21 20 23 22
// CHECK-NEXT: {{^}}34 35 32 33 38 39 36 37 51 50 49 48 55 54 53 52
// CHECK: {{^}}998 999 996 997 994 995 992 993 1015 1014 1013 1012 1011 1010 1009 1008
// CHECK-NEXT: {{^}}8 9 10 11 12 13 14 15 25 24 27 26 29 28 31 30
// CHECK-NEXT: {{^}}42 43 40 41 46 47 44 45 59 58 57 56 63 62 61 60
// CHECK: {{^}}1006 1007 1004 1005 1002 1003 1000 1001 1023 1022 1021 1020 1019 1018 1017 1016

!left = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!right = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!bar = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
memref.global "private" @tileL : memref<128x64xf16, 3>
memref.global "private" @tileR : memref<64x128xf16, 3>
func.func @main() {
  %n32768 = arith.constant 32768 : index
  %ticks = arith.constant 10000000 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %hl = memref.alloc() : memref<128x64xf16>
  %hr = memref.alloc() : memref<64x128xf16>
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      %a = arith.muli %i, %c128 : index
      %b = arith.addi %a, %j : index
      %d = arith.divui %b, %c8 : index
      %e = arith.index_cast %d : index to i32
      %f = arith.sitofp %e : i32 to f16
      memref.store %f, %hr[%i, %j] : memref<64x128xf16>
      memref.store %f, %hl[%j, %i] : memref<128x64xf16>
    }
  }
  %t = gpu.wait async
  %l, %t0 = gpu.alloc async [%t] () : memref<128x64xf16>
  %r, %t1 = gpu.alloc async [%t] () : memref<64x128xf16>
  %t2 = gpu.memcpy async [%t] %l, %hl : memref<128x64xf16>, memref<128x64xf16>
  %t3 = gpu.memcpy async [%t] %r, %hr : memref<64x128xf16>, memref<64x128xf16>
  gpu.wait [%t2, %t3]
  %ul = memref.cast %l : memref<128x64xf16> to memref<*xf16>
  %ur = memref.cast %r : memref<64x128xf16> to memref<*xf16>
  %ml = nvgpu.tma.create.descriptor %ul box[%c128, %c64] : memref<*xf16> -> !left
  %mr = nvgpu.tma.create.descriptor %ur box[%c64, %c64] : memref<*xf16> -> !right
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1) threads(%tx, %ty, %tz) in (%b0 = %c128, %b1 = %c1, %b2 = %c1) {
    %n = gpu.block_dim x
    %id = gpu.thread_id x
    %sl = memref.get_global @tileL : memref<128x64xf16, 3>
    %sr = memref.get_global @tileR : memref<64x128xf16, 3>
    %r1 = memref.subview %sr[0, 0] [64, 64] [1, 1] : memref<64x128xf16, 3> to memref<64x64xf16, strided<[128, 1]>, 3>
    %r2 = memref.reinterpret_cast %sr to offset: [4096], sizes: [64, 64], strides: [128, 1] : memref<64x128xf16, 3> to memref<64x64xf16, strided<[128, 1], offset: 4096>, 3>
    %bar = nvgpu.mbarrier.create -> !bar
    nvgpu.mbarrier.init %bar[%c0], %n : !bar
    %me = arith.cmpi eq, %id, %c0 : index
    scf.if %me {
      nvgpu.tma.async.load %ml[%c0, %c0], %bar[%c0] to %sl : !left, !bar -> memref<128x64xf16, 3>
      nvgpu.tma.async.load %mr[%c0, %c0], %bar[%c0] to %r1 : !right, !bar -> memref<64x64xf16, strided<[128, 1]>, 3>
      nvgpu.tma.async.load %mr[%c64, %c0], %bar[%c0] to %r2 : !right, !bar -> memref<64x64xf16, strided<[128, 1], offset: 4096>, 3>
      nvgpu.mbarrier.arrive.expect_tx %bar[%c0], %n32768 : !bar
    } else {
      nvgpu.mbarrier.arrive.expect_tx %bar[%c0], %c0 : !bar
    }
    %first = arith.constant false
    nvgpu.mbarrier.try_wait.parity %bar[%c0], %first, %ticks : !bar
    scf.if %me {
      scf.for %i = %c0 to %c64 step %c1 {
        scf.for %j = %c0 to %c128 step %c8 {
          %v = memref.load %sr[%i, %j] : memref<64x128xf16, 3>
          %w = arith.extf %v : f16 to f32
          gpu.printf "%.0f ", %w : f32
        }
        gpu.printf "\0A"
      }
    }
    gpu.barrier
    gpu.terminator
  }
  return
}
