// RUN: mgpu-tune run %s | FileCheck %s

// Two barriers, one of which counts the bytes of a copy in each of three phases, the other
// one the threads, by their tokens; 32 bytes of a row are swizzled.
// CHECK: {{^}}[0,  1,  2,  3,  12,  13,  14,  15,  24,  25,  26,  27]
// CHECK: {{^}}sum 2976

!map = !nvgpu.tensormap.descriptor<tensor = memref<8x8xf32, 3>, swizzle = swizzle_32b, l2promo = none, oob = zero, interleave = none>
!bars = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!token = !nvgpu.mbarrier.token
#shared = #gpu.address_space<workgroup>

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %h = memref.alloc() : memref<24x8xf32>
  %firsts = memref.alloc() : memref<12xf32>
  %sum = memref.alloc() : memref<1xf32>
  scf.for %i = %c0 to %c3 step %c1 {
    scf.for %k = %c0 to %c64 step %c1 {
      %r = arith.divui %k, %c8 : index
      %c = arith.remui %k, %c8 : index
      %up = arith.muli %i, %c8 : index
      %row = arith.addi %up, %r : index
      %c12 = arith.constant 12 : index
      %base = arith.muli %i, %c12 : index
      %v = arith.addi %base, %c : index
      %n = arith.index_cast %v : index to i32
      %f = arith.sitofp %n : i32 to f32
      memref.store %f, %h[%row, %c] : memref<24x8xf32>
    }
  }
  %t = gpu.wait async
  %d, %t0 = gpu.alloc async [%t] () : memref<24x8xf32>
  %t1 = gpu.memcpy async [%t0] %d, %h : memref<24x8xf32>, memref<24x8xf32>
  gpu.wait [%t1]
  %u = memref.cast %d : memref<24x8xf32> to memref<*xf32>
  %m = nvgpu.tma.create.descriptor %u box[%c8, %c8] : memref<*xf32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%g0 = %c1, %g1 = %c1, %g2 = %c1)
             threads(%tx, %ty, %tz) in (%b0 = %c64, %b1 = %c1, %b2 = %c1)
             workgroup(%tile : memref<8x8xf32, #shared>) {
    %none = arith.constant 0.0 : f32
    %ticks = arith.constant 1000 : index
    %bytes = arith.constant 256 : index
    %c2 = arith.constant 2 : index
    %me = arith.cmpi eq, %tx, %c0 : index
    %bar = nvgpu.mbarrier.create -> !bars
    nvgpu.mbarrier.init %bar[%c0], %c1, predicate = %me : !bars
    nvgpu.mbarrier.init %bar[%c1], %c64 : !bars
    %last = scf.for %i = %c0 to %c3 step %c1 iter_args(%before = %none) -> (f32) {
      %up = arith.muli %i, %c8 : index
      scf.if %me {
        nvgpu.mbarrier.arrive.expect_tx %bar[%c0], %bytes : !bars
        nvgpu.tma.async.load %m[%c0, %up], %bar[%c0] to %tile : !map, !bars -> memref<8x8xf32, #shared>
      }
      %odd = arith.remui %i, %c2 : index
      %parity = arith.cmpi eq, %odd, %c1 : index
      nvgpu.mbarrier.try_wait.parity %bar[%c0], %parity, %ticks : !bars
      %r = arith.divui %tx, %c8 : index
      %c = arith.remui %tx, %c8 : index
      %v = memref.load %tile[%r, %c] : memref<8x8xf32, #shared>
      %after = arith.addf %before, %v : f32
      scf.if %me {
        scf.for %k = %c0 to %c4 step %c1 {
          %w = memref.load %tile[%c0, %k] : memref<8x8xf32, #shared>
          %a = arith.muli %i, %c4 : index
          %b = arith.addi %a, %k : index
          memref.store %w, %firsts[%b] : memref<12xf32>
        }
      }
      %token = nvgpu.mbarrier.arrive %bar[%c1] : !bars -> !token
      %done = nvgpu.mbarrier.test.wait %bar[%c1], %token : !bars, !token
      scf.yield %after : f32
    }
    %all = gpu.all_reduce add %last uniform {} : (f32) -> f32
    scf.if %me {
      memref.store %all, %sum[%c0] : memref<1xf32>
    }
    gpu.terminator
  }
  %uf = memref.cast %firsts : memref<12xf32> to memref<*xf32>
  call @printMemrefF32(%uf) : (memref<*xf32>) -> ()
  %s = memref.load %sum[%c0] : memref<1xf32>
  vector.print str "sum "
  vector.print %s : f32
  return
}
func.func private @printMemrefF32(memref<*xf32>)
