// RUN: mgpu-tune run %s | FileCheck %s
// RUN: sed 's/nvvm.barrier0/nvvm.cluster.arrive/' %s > %t.mlir
// RUN: %{exits} 5 mgpu-tune run %t.mlir | FileCheck %s --check-prefix=REFUSED

// A product of tensor cores as nvgpu writes it: copies to workgroup memory,
// ldmatrix, mma.sync. A has twos on its diagonal, B counts, C begins with 1.
// CHECK: sizes = [16, 8] strides = [8, 1] data = 
// CHECK-NEXT: {{\[\[}}1,   3,   5,   7,   9,   11,   13,   15], 
// CHECK-NEXT: [17,   19,   21,   23,   25,   27,   29,   31], 
// CHECK: [241,   243,   245,   247,   249,   251,   253,   255]{{\]}}
// REFUSED: error: {{.*}}'nvvm.cluster.arrive' op is not supported in a kernel on the host target

#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_80">] {
    gpu.func @product(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>)
        workgroup(%sa: memref<16x16xf16, #shared>, %sb: memref<16x8xf16, #shared>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %n = nvvm.read.ptx.sreg.tid.x : i32
      %t = arith.index_cast %n : i32 to index
      %half = arith.divui %t, %c2 : index
      %odd = arith.remui %t, %c2 : index
      %start = arith.muli %odd, %c8 : index
      %start4 = arith.muli %odd, %c4 : index
      %t0 = nvgpu.device_async_copy %a[%half, %start], %sa[%half, %start], 8 : memref<16x16xf16> to memref<16x16xf16, #shared>
      %t1 = nvgpu.device_async_copy %b[%half, %start4], %sb[%half, %start4], 4, %c4 : memref<16x8xf16> to memref<16x8xf16, #shared>
      %g = nvgpu.device_async_create_group %t0, %t1
      nvgpu.device_async_wait %g {numGroups = 0 : i32}
      nvvm.barrier0
      %row = arith.remui %t, %c16 : index
      %half16 = arith.divui %t, %c16 : index
      %column = arith.muli %half16, %c8 : index
      %fa = nvgpu.ldmatrix %sa[%row, %column] {numTiles = 4 : i32, transpose = false} : memref<16x16xf16, #shared> -> vector<4x2xf16>
      %fb = nvgpu.ldmatrix %sb[%row, %c0] {numTiles = 2 : i32, transpose = true} : memref<16x8xf16, #shared> -> vector<2x2xf16>
      %one = arith.constant dense<1.0> : vector<2x2xf32>
      %d = nvgpu.mma.sync (%fa, %fb, %one) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      %group = arith.divui %t, %c4 : index
      %quad = arith.remui %t, %c4 : index
      %at = arith.muli %quad, %c2 : index
      %below = arith.addi %group, %c8 : index
      %d0 = vector.extract %d[0] : vector<2xf32> from vector<2x2xf32>
      %d1 = vector.extract %d[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %d0, %c[%group, %at] : memref<16x8xf32>, vector<2xf32>
      vector.store %d1, %c[%below, %at] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0.0 : f16
    %two = arith.constant 2.0 : f16
    %a = memref.alloc() : memref<16x16xf16>
    %b = memref.alloc() : memref<16x8xf16>
    %c = memref.alloc() : memref<16x8xf32>
    linalg.fill ins(%zero : f16) outs(%a : memref<16x16xf16>)
    scf.for %i = %c0 to %c16 step %c1 {
      memref.store %two, %a[%i, %i] : memref<16x16xf16>
      scf.for %j = %c0 to %c8 step %c1 {
        %r = arith.muli %i, %c8 : index
        %k = arith.addi %r, %j : index
        %n = arith.index_cast %k : index to i32
        %f = arith.sitofp %n : i32 to f16
        memref.store %f, %b[%i, %j] : memref<16x8xf16>
      }
    }
    gpu.launch_func @kernels::@product blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%a : memref<16x16xf16>, %b : memref<16x8xf16>, %c : memref<16x8xf32>)
    %u = memref.cast %c : memref<16x8xf32> to memref<*xf32>
    call @printMemrefF32(%u) : (memref<*xf32>) -> ()
    return
  }
  func.func private @printMemrefF32(memref<*xf32>)
}
