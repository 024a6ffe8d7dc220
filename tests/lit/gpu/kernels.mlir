// RUN: mgpu-tune run %s | FileCheck %s

// Kernels with branches between blocks, clusters, broadcasts of a lane, globals
// of their module, and a module that has a kernel of the same name.
// CHECK: sizes = [64] strides = [1] data = 
// CHECK-NEXT: {{\[}}0,  1,  2,  0,  1,  2
// CHECK: sizes = [2, 32]
// CHECK-NEXT: {{\[\[}}7,   7,   7,
// CHECK-NEXT: {{\[}}3,   3,   3,
// CHECK: sizes = [8, 4] strides = [4, 1] data = 
// CHECK-NEXT: {{\[\[}}0,   4,   0,   2], 
// CHECK-NEXT: [0,   4,   1,   2], 
// CHECK-NEXT: [1,   4,   0,   2], 
// CHECK: [3,   4,   1,   2]{{\]}}
// CHECK: sizes = [4] strides = [1] data = 
// CHECK-NEXT: {{\[}}12,  23,  34,  45]

module attributes {gpu.container_module} {
  gpu.module @first {
    memref.global "private" @table : memref<4xi32> = dense<[10, 20, 30, 40]>
    // i modulo 3 by subtraction.
    gpu.func @work(%m: memref<64xi32>) kernel {
      %t = gpu.thread_id x
      %three = arith.constant 3 : i32
      %n = arith.index_cast %t : index to i32
      cf.br ^head(%n : i32)
    ^head(%i: i32):
      %more = arith.cmpi sge, %i, %three : i32
      cf.cond_br %more, ^body, ^end
    ^body:
      %less = arith.subi %i, %three : i32
      cf.br ^head(%less : i32)
    ^end:
      memref.store %i, %m[%t] : memref<64xi32>
      gpu.return
    }
    gpu.func @broadcast(%m: memref<2x32xi32>, %n: memref<4xi32>) kernel {
      %w = gpu.subgroup_id : index
      %l = gpu.lane_id
      %zero = arith.constant 0 : index
      %three = arith.constant 3 : i32
      %seven = arith.constant 7 : i32
      %thirty_two = arith.constant 32 : i32
      %i = arith.index_cast %l : index to i32
      %j = arith.addi %i, %seven : i32
      %first = gpu.subgroup_broadcast %j, first_active_lane : i32
      %lane = gpu.subgroup_broadcast %i, specific_lane %three : i32
      %is = arith.cmpi eq, %w, %zero : index
      %size = gpu.subgroup_size : index
      %whole = arith.index_cast %size : index to i32
      %none = arith.subi %whole, %thirty_two : i32
      %w0 = arith.select %is, %first, %lane : i32
      %v = arith.addi %w0, %none : i32
      memref.store %v, %m[%w, %l] : memref<2x32xi32>
      gpu.return
    }
    gpu.func @globals(%m: memref<4xi32>) kernel {
      %t = gpu.thread_id x
      %table = memref.get_global @table : memref<4xi32>
      %v = memref.load %table[%t] : memref<4xi32>
      %w = memref.load %m[%t] : memref<4xi32>
      %s = arith.addi %v, %w : i32
      memref.store %s, %m[%t] : memref<4xi32>
      gpu.return
    }
  }
  gpu.module @second {
    memref.global "private" @table : memref<4xi32> = dense<[2, 3, 4, 5]>
    gpu.func @globals(%m: memref<4xi32>) kernel {
      %t = gpu.thread_id x
      %table = memref.get_global @table : memref<4xi32>
      %v = memref.load %table[%t] : memref<4xi32>
      memref.store %v, %m[%t] : memref<4xi32>
      gpu.return
    }
    gpu.func @clusters(%m: memref<8x4xindex>) kernel {
      %b = gpu.block_id x
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %id = gpu.cluster_id x
      %dim = gpu.cluster_dim x
      %in = gpu.cluster_block_id x
      %size = gpu.cluster_dim_blocks x
      memref.store %id, %m[%b, %c0] : memref<8x4xindex>
      memref.store %dim, %m[%b, %c1] : memref<8x4xindex>
      memref.store %in, %m[%b, %c2] : memref<8x4xindex>
      memref.store %size, %m[%b, %c3] : memref<8x4xindex>
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %m = memref.alloc() : memref<64xi32>
    gpu.launch_func @first::@work blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%m : memref<64xi32>)
    %um = memref.cast %m : memref<64xi32> to memref<*xi32>
    call @printMemrefI32(%um) : (memref<*xi32>) -> ()
    %n = memref.alloc() : memref<2x32xi32>
    %g = memref.alloc() : memref<4xi32>
    gpu.launch_func @first::@broadcast blocks in (%c1, %c1, %c1) threads in (%c64, %c1, %c1) args(%n : memref<2x32xi32>, %g : memref<4xi32>)
    %un = memref.cast %n : memref<2x32xi32> to memref<*xi32>
    call @printMemrefI32(%un) : (memref<*xi32>) -> ()
    %k = memref.alloc() : memref<8x4xindex>
    gpu.launch_func @second::@clusters clusters in (%c2, %c1, %c1) blocks in (%c8, %c1, %c1) threads in (%c1, %c1, %c1) args(%k : memref<8x4xindex>)
    %uk = memref.cast %k : memref<8x4xindex> to memref<*xindex>
    call @printMemrefInd(%uk) : (memref<*xindex>) -> ()
    gpu.launch_func @second::@globals blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%g : memref<4xi32>)
    gpu.launch_func @first::@globals blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%g : memref<4xi32>)
    %ug = memref.cast %g : memref<4xi32> to memref<*xi32>
    call @printMemrefI32(%ug) : (memref<*xi32>) -> ()
    return
  }
  func.func private @printMemrefI32(memref<*xi32>)
  func.func private @printMemrefInd(memref<*xindex>)
}
