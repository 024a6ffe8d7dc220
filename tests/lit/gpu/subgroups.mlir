// RUN: mgpu-tune run %s | FileCheck %s

// Sizes of the launch, subgroups of 32 and their matrices, one operation of
// each kind. What a block of 64 and a grid of 2 make of 100 * block + 10 * grid
// + subgroups:
// CHECK: sizes = [2] strides = [1] data = 
// CHECK-NEXT: {{\[}}6422,  6422]
// Lanes 0 to 3: the lane's neighbour, the next lane, the sum and maximum of all
// lanes, and what lane 0 made of the sum.
// CHECK: sizes = [5, 4] strides = [4, 1] data = 
// CHECK-NEXT: {{\[\[}}1,   0,   3,   2], 
// CHECK-NEXT: [1,   2,   3,   4], 
// CHECK-NEXT: [496,   496,   496,   496], 
// CHECK-NEXT: [32,   32,   32,   32], 
// CHECK-NEXT: [497,   497,   497,   497]]
// A product of 16x16x16 of ones and twos, plus 3, twice, in 256 places: 2 * (32
// + 3), and 1 more in the 32 places to which a lane added it.
// CHECK: sizes = [] strides = [] data = 
// CHECK-NEXT: [17952]

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @sizes(%m: memref<2xi32>) kernel {
      %c10 = arith.constant 10 : index
      %c100 = arith.constant 100 : index
      %b = gpu.block_id x
      %i = gpu.global_id x
      %block = gpu.block_dim x
      %grid = gpu.grid_dim x
      %subgroups = gpu.num_subgroups : index
      %0 = arith.muli %block, %c100 : index
      %1 = arith.muli %grid, %c10 : index
      %2 = arith.addi %0, %1 : index
      %3 = arith.addi %2, %subgroups : index
      %v = arith.index_cast %3 : index to i32
      gpu.barrier
      %base = arith.muli %b, %block : index
      %first = arith.cmpi eq, %i, %base : index
      scf.if %first {
        memref.store %v, %m[%b] : memref<2xi32>
      }
      gpu.return
    }
    gpu.func @lanes(%m: memref<5x4xi32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %c4 = arith.constant 4 : index
      %one = arith.constant 1 : i32
      %all = arith.constant 32 : i32
      %lane = gpu.lane_id
      %i = arith.index_cast %lane : index to i32
      %next = arith.addi %i, %one : i32
      %a, %ok = gpu.shuffle xor %i, %one, %all : i32
      %b, %good = gpu.rotate %i, 1, 32 : i32
      %sum = gpu.subgroup_reduce add %i : (i32) -> i32
      %most = gpu.all_reduce %next {
      ^bb0(%x: i32, %y: i32):
        %z = arith.maxsi %x, %y : i32
        gpu.yield %z : i32
      } : (i32) -> i32
      %given = gpu.warp_execute_on_lane_0(%lane)[32] -> (i32) {
        %more = arith.addi %sum, %one : i32
        gpu.yield %more : i32
      }
      %few = arith.cmpi ult, %lane, %c4 : index
      scf.if %few {
        memref.store %a, %m[%c0, %lane] : memref<5x4xi32>
        memref.store %b, %m[%c1, %lane] : memref<5x4xi32>
        memref.store %sum, %m[%c2, %lane] : memref<5x4xi32>
        memref.store %most, %m[%c3, %lane] : memref<5x4xi32>
        memref.store %given, %m[%c4, %lane] : memref<5x4xi32>
      }
      gpu.return
    }
    gpu.func @matrices(%a: memref<16x16xf16>, %c: memref<16x16xf32>) kernel {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      %two = arith.constant 2.0 : f16
      %three = arith.constant 3.0 : f32
      %x = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
      %y = gpu.subgroup_mma_constant_matrix %two : !gpu.mma_matrix<16x16xf16, "BOp">
      %z = gpu.subgroup_mma_constant_matrix %three : !gpu.mma_matrix<16x16xf32, "COp">
      %p = gpu.subgroup_mma_compute %x, %y, %z : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
      %s = gpu.subgroup_mma_elementwise addf %p, %p : (!gpu.mma_matrix<16x16xf32, "COp">, !gpu.mma_matrix<16x16xf32, "COp">) -> !gpu.mma_matrix<16x16xf32, "COp">
      %e = gpu.subgroup_mma_extract_thread_local %s[%c0] : !gpu.mma_matrix<16x16xf32, "COp"> -> f32
      %d = arith.addf %e, %one : f32
      %n = gpu.subgroup_mma_insert_thread_local %d, %s[%c0] : f32, !gpu.mma_matrix<16x16xf32, "COp"> -> !gpu.mma_matrix<16x16xf32, "COp">
      gpu.subgroup_mma_store_matrix %n, %c[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
      gpu.return
    }
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %one = arith.constant 1.0 : f16
    %zero = arith.constant 0.0 : f32
    %m = memref.alloc() : memref<2xi32>
    gpu.launch_func @kernels::@sizes blocks in (%c2, %c1, %c1) threads in (%c64, %c1, %c1) args(%m : memref<2xi32>)
    %um = memref.cast %m : memref<2xi32> to memref<*xi32>
    call @printMemrefI32(%um) : (memref<*xi32>) -> ()
    %n = memref.alloc() : memref<5x4xi32>
    gpu.launch_func @kernels::@lanes blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%n : memref<5x4xi32>)
    %un = memref.cast %n : memref<5x4xi32> to memref<*xi32>
    call @printMemrefI32(%un) : (memref<*xi32>) -> ()
    %a = memref.alloc() : memref<16x16xf16>
    %c = memref.alloc() : memref<16x16xf32>
    linalg.fill ins(%one : f16) outs(%a : memref<16x16xf16>)
    gpu.launch_func @kernels::@matrices blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%a : memref<16x16xf16>, %c : memref<16x16xf32>)
    // Which number is a lane's own differs between targets; their sum does not.
    %sum = memref.alloc() : memref<f32>
    memref.store %zero, %sum[] : memref<f32>
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %v = memref.load %c[%i, %j] : memref<16x16xf32>
        %old = memref.load %sum[] : memref<f32>
        %new = arith.addf %old, %v : f32
        memref.store %new, %sum[] : memref<f32>
      }
    }
    %us = memref.cast %sum : memref<f32> to memref<*xf32>
    call @printMemrefF32(%us) : (memref<*xf32>) -> ()
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
  func.func private @printMemrefF32(memref<*xf32>)
}
