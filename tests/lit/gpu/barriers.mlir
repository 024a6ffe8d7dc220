// RUN: mgpu-tune run %s | FileCheck %s

// Barriers in memory as their tokens are tested, not awaited, and a reciprocal:
// lane 31 wrote 31 + 1, which lane 0 finds behind the barrier.
// CHECK: sizes = [2] strides = [1] data = 
// CHECK-NEXT: {{\[}}32,  0.25]

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!token = !nvgpu.mbarrier.token
!map = !nvgpu.tensormap.descriptor<tensor = memref<4xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>

func.func @main() {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c32 = arith.constant 32 : index
  %m = memref.alloc() : memref<2xf32>
  %source = gpu.alloc () : memref<4xf32>
  %us = memref.cast %source : memref<4xf32> to memref<*xf32>
  %map = nvgpu.tma.create.descriptor %us box[%c4] : memref<*xf32> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c32, %sy = %c1, %sz = %c1)
             workgroup(%tile : memref<32xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c31 = arith.constant 31 : index
    nvgpu.tma.fence.descriptor %map : !map
    %b = nvgpu.mbarrier.create -> !barrier
    %pointer = nvgpu.mbarrier.get %b[%one] : !barrier -> i32
    nvgpu.mbarrier.init %b[%c0], %c32 : !barrier
    %n = arith.addi %tx, %one : index
    %i = arith.index_cast %n : index to i32
    %f = arith.sitofp %i : i32 to f32
    memref.store %f, %tile[%tx] : memref<32xf32, #gpu.address_space<workgroup>>
    %early = nvgpu.mbarrier.arrive.nocomplete %b[%one], %c32 : !barrier -> !token
    %token = nvgpu.mbarrier.arrive %b[%c0] : !barrier -> !token
    %done = nvgpu.mbarrier.test.wait %b[%c0], %token : !barrier, !token
    %first = arith.cmpi eq, %tx, %c0 : index
    %both = arith.andi %first, %done : i1
    scf.if %both {
      %v = memref.load %tile[%c31] : memref<32xf32, #gpu.address_space<workgroup>>
      memref.store %v, %m[%c0] : memref<2xf32>
      %four = arith.constant dense<4.0> : vector<1xf32>
      %r = nvgpu.rcp %four {rounding = approx, ftz} : vector<1xf32>
      vector.store %r, %m[%one] : memref<2xf32>, vector<1xf32>
    }
    gpu.terminator
  }
  %um = memref.cast %m : memref<2xf32> to memref<*xf32>
  call @printMemrefF32(%um) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
