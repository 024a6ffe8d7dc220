// RUN: mgpu-tune run %s | FileCheck %s

// Asynchronous copies of 16, 8 and 4 bytes, the last one half of zeros, in two
// groups of which the first is waited for alone; and tiles by ldmatrix, of one,
// two and four, transposed or not. Element (i, j) of the memory is 40 i + j.
// CHECK: wrong copies 0, wrong elements of tiles 0

#shared = #gpu.address_space<workgroup>
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @work(%x: memref<32x40xf16>, %o: memref<6x64x8xf16>, %p: memref<64x3xf16>)
        workgroup(%tile: memref<32x40xf16, #shared>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c5 = arith.constant 5 : index
      %c8 = arith.constant 8 : index
      %c11 = arith.constant 11 : index
      %c12 = arith.constant 12 : index
      %c13 = arith.constant 13 : index
      %c16 = arith.constant 16 : index
      %t = gpu.thread_id x
      %s = gpu.subgroup_id : index
      %lane = gpu.lane_id
      %row = arith.divui %t, %c2 : index
      %odd = arith.remui %t, %c2 : index
      %from = arith.muli %odd, %c16 : index
      %at8 = arith.addi %from, %c8 : index
      %at11 = arith.addi %from, %c11 : index
      %at12 = arith.addi %from, %c12 : index
      %at13 = arith.addi %from, %c13 : index
      %t0 = nvgpu.device_async_copy %x[%row, %from], %tile[%row, %from], 8 {bypassL1} : memref<32x40xf16> to memref<32x40xf16, #shared>
      %t1 = nvgpu.device_async_copy %x[%row, %at8], %tile[%row, %at8], 4 : memref<32x40xf16> to memref<32x40xf16, #shared>
      %g0 = nvgpu.device_async_create_group %t0, %t1
      %t2 = nvgpu.device_async_copy %x[%row, %at12], %tile[%row, %at12], 2, %c1 : memref<32x40xf16> to memref<32x40xf16, #shared>
      %g1 = nvgpu.device_async_create_group %t2
      nvgpu.device_async_wait %g0 {numGroups = 1 : i32}
      %e11 = memref.load %tile[%row, %at11] : memref<32x40xf16, #shared>
      nvgpu.device_async_wait %g1
      %e12 = memref.load %tile[%row, %at12] : memref<32x40xf16, #shared>
      %e13 = memref.load %tile[%row, %at13] : memref<32x40xf16, #shared>
      memref.store %e11, %p[%t, %c0] : memref<64x3xf16>
      memref.store %e12, %p[%t, %c1] : memref<64x3xf16>
      memref.store %e13, %p[%t, %c2] : memref<64x3xf16>
      gpu.barrier
      %row16 = arith.remui %lane, %c16 : index
      %row8 = arith.remui %lane, %c8 : index
      %column = arith.muli %s, %c16 : index
      %m0 = nvgpu.ldmatrix %tile[%lane, %column] {numTiles = 4 : i32, transpose = false} : memref<32x40xf16, #shared> -> vector<4x2xf16>
      %m1 = nvgpu.ldmatrix %tile[%lane, %column] {numTiles = 4 : i32, transpose = true} : memref<32x40xf16, #shared> -> vector<4x2xf16>
      %m2 = nvgpu.ldmatrix %tile[%row16, %column] {numTiles = 2 : i32, transpose = false} : memref<32x40xf16, #shared> -> vector<2x2xf16>
      %m3 = nvgpu.ldmatrix %tile[%row16, %column] {numTiles = 2 : i32, transpose = true} : memref<32x40xf16, #shared> -> vector<2x2xf16>
      %m4 = nvgpu.ldmatrix %tile[%row8, %column] {numTiles = 1 : i32, transpose = false} : memref<32x40xf16, #shared> -> vector<1x2xf16>
      %m5 = nvgpu.ldmatrix %tile[%row8, %column] {numTiles = 1 : i32, transpose = true} : memref<32x40xf16, #shared> -> vector<1x2xf16>
      %f0 = vector.shape_cast %m0 : vector<4x2xf16> to vector<8xf16>
      %f1 = vector.shape_cast %m1 : vector<4x2xf16> to vector<8xf16>
      %f2 = vector.shape_cast %m2 : vector<2x2xf16> to vector<4xf16>
      %f3 = vector.shape_cast %m3 : vector<2x2xf16> to vector<4xf16>
      %f4 = vector.shape_cast %m4 : vector<1x2xf16> to vector<2xf16>
      %f5 = vector.shape_cast %m5 : vector<1x2xf16> to vector<2xf16>
      vector.store %f0, %o[%c0, %t, %c0] : memref<6x64x8xf16>, vector<8xf16>
      vector.store %f1, %o[%c1, %t, %c0] : memref<6x64x8xf16>, vector<8xf16>
      vector.store %f2, %o[%c2, %t, %c0] : memref<6x64x8xf16>, vector<4xf16>
      vector.store %f3, %o[%c3, %t, %c0] : memref<6x64x8xf16>, vector<4xf16>
      vector.store %f4, %o[%c4, %t, %c0] : memref<6x64x8xf16>, vector<2xf16>
      vector.store %f5, %o[%c5, %t, %c0] : memref<6x64x8xf16>, vector<2xf16>
      gpu.return
    }
    // By one thread: what is not 40 i + j.
    gpu.func @count(%o: memref<6x64x8xf16>, %p: memref<64x3xf16>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %c6 = arith.constant 6 : index
      %c8 = arith.constant 8 : index
      %c11 = arith.constant 11 : index
      %c16 = arith.constant 16 : index
      %c32 = arith.constant 32 : index
      %c64 = arith.constant 64 : index
      %none = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %copies = scf.for %t = %c0 to %c64 step %c1 iter_args(%outer = %none) -> (i32) {
        %row = arith.divui %t, %c2 : index
        %odd = arith.remui %t, %c2 : index
        %from = arith.muli %odd, %c16 : index
        %inner = scf.for %k = %c0 to %c3 step %c1 iter_args(%wrong = %none) -> (i32) {
          %j0 = arith.addi %from, %c11 : index
          %j = arith.addi %j0, %k : index
          %v = func.call @number(%row, %j) : (index, index) -> f16
          %zero = arith.constant 0.0 : f16
          %isLast = arith.cmpi eq, %k, %c2 : index
          %expected = arith.select %isLast, %zero, %v : f16
          %found = memref.load %p[%t, %k] : memref<64x3xf16>
          %differs = arith.cmpf une, %found, %expected : f16
          %more = arith.select %differs, %one, %none : i32
          %sum = arith.addi %wrong, %more : i32
          scf.yield %sum : i32
        }
        %sum = arith.addi %outer, %inner : i32
        scf.yield %sum : i32
      }
      %tiles = scf.for %m = %c0 to %c6 step %c1 iter_args(%all = %none) -> (i32) {
        %half = arith.divui %m, %c2 : index
        %elements = arith.shrui %c8, %half : index
        %isTurned = arith.remui %m, %c2 : index
        %turned = arith.cmpi eq, %isTurned, %c1 : index
        %ofMatrix = scf.for %t = %c0 to %c64 step %c1 iter_args(%outer = %all) -> (i32) {
          %s = arith.divui %t, %c32 : index
          %lane = arith.remui %t, %c32 : index
          %base = arith.muli %s, %c16 : index
          %group = arith.divui %lane, %c4 : index
          %quad = arith.remui %lane, %c4 : index
          %pair = arith.muli %quad, %c2 : index
          %ofLane = scf.for %k = %c0 to %elements step %c1 iter_args(%wrong = %outer) -> (i32) {
            %odd = arith.remui %k, %c2 : index
            %within = arith.addi %pair, %odd : index
            %r = arith.select %turned, %within, %group : index
            %c = arith.select %turned, %group, %within : index
            %number = arith.divui %k, %c2 : index
            %first = arith.muli %number, %c8 : index
            %i = arith.addi %first, %r : index
            %j = arith.addi %base, %c : index
            %expected = func.call @number(%i, %j) : (index, index) -> f16
            %found = memref.load %o[%m, %t, %k] : memref<6x64x8xf16>
            %differs = arith.cmpf une, %found, %expected : f16
            %more = arith.select %differs, %one, %none : i32
            %sum = arith.addi %wrong, %more : i32
            scf.yield %sum : i32
          }
          scf.yield %ofLane : i32
        }
        scf.yield %ofMatrix : i32
      }
      gpu.printf "wrong copies %d, wrong elements of tiles %d\n", %copies, %tiles : i32, i32
      gpu.return
    }
    func.func private @number(%i: index, %j: index) -> f16 {
      %c40 = arith.constant 40 : index
      %row = arith.muli %i, %c40 : index
      %sum = arith.addi %row, %j : index
      %n = arith.index_cast %sum : index to i32
      %f = arith.sitofp %n : i32 to f16
      return %f : f16
    }
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c40 = arith.constant 40 : index
    %c64 = arith.constant 64 : index
    %x = memref.alloc() : memref<32x40xf16>
    %o = memref.alloc() : memref<6x64x8xf16>
    %p = memref.alloc() : memref<64x3xf16>
    scf.for %i = %c0 to %c32 step %c1 {
      scf.for %j = %c0 to %c40 step %c1 {
        %row = arith.muli %i, %c40 : index
        %sum = arith.addi %row, %j : index
        %n = arith.index_cast %sum : index to i32
        %f = arith.sitofp %n : i32 to f16
        memref.store %f, %x[%i, %j] : memref<32x40xf16>
      }
    }
    gpu.launch_func @kernels::@work blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<32x40xf16>, %o : memref<6x64x8xf16>, %p : memref<64x3xf16>)
    gpu.launch_func @kernels::@count blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
        args(%o : memref<6x64x8xf16>, %p : memref<64x3xf16>)
    return
  }
}
