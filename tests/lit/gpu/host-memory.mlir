// RUN: mgpu-tune run %s | FileCheck %s
// RUN: mgpu-tune run %s --json | FileCheck %s --check-prefix=JSON

// Host code fills memory, a launch doubles it, host code reads a sum of it,
// which a later launch and a print use. What is printed is what MLIR's runner
// prints, but for the address.
// CHECK: Unranked Memref base@ = 0x{{[0-9a-f]+}} rank = 2 offset = 0 sizes = [2, 4] strides = [4, 1] data = 
// CHECK-NEXT: {{^}}{{\[\[}}0,   2,   4,   6], 
// CHECK-NEXT: {{^}} [8,   10,   12,   14]]
// CHECK-NEXT: {{^}}24
// CHECK-NEXT: {{^}}( ( 25, 27 ), ( 29, 31 ) )
// CHECK-NEXT: {{^}}prepare
// JSON: "printed": "Unranked Memref

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @double(%m: memref<2x4xf32>) kernel attributes {known_block_size = array<i32: 4, 1, 1>} {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %v = memref.load %m[%b, %t] : memref<2x4xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %m[%b, %t] : memref<2x4xf32>
      gpu.return
    }
    gpu.func @add(%m: memref<2x2xf32>, %s: f32) kernel {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %c2 = arith.constant 2 : index
      %r = arith.muli %b, %c2 : index
      %i = arith.addi %r, %t : index
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      %two = arith.constant 2.0 : f32
      %one = arith.constant 1.0 : f32
      %g = arith.mulf %f, %two : f32
      %h = arith.addf %g, %one : f32
      %w = arith.addf %h, %s : f32
      memref.store %w, %m[%b, %t] : memref<2x2xf32>
      gpu.return
    }
  }
  func.func private @fill(%m: memref<2x4xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c2 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        %r = arith.muli %i, %c4 : index
        %k = arith.addi %r, %j : index
        %n = arith.index_cast %k : index to i32
        %f = arith.sitofp %n : i32 to f32
        memref.store %f, %m[%i, %j] : memref<2x4xf32>
      }
    }
    return
  }
  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %m = memref.alloc() : memref<2x4xf32>
    %u = memref.cast %m : memref<2x4xf32> to memref<*xf32>
    gpu.host_register %u : memref<*xf32>
    call @fill(%m) : (memref<2x4xf32>) -> ()
    gpu.launch_func @kernels::@double blocks in (%c2, %c1, %c1) threads in (%c4, %c1, %c1) args(%m : memref<2x4xf32>)
    call @printMemrefF32(%u) : (memref<*xf32>) -> ()
    %a = memref.load %m[%c1, %c3] : memref<2x4xf32>
    %b = memref.load %m[%c1, %c1] : memref<2x4xf32>
    %s = arith.addf %a, %b : f32
    vector.print %s : f32
    // Used right behind a print, and an assertion right behind another.
    memref.store %s, %m[%c0, %c0] : memref<2x4xf32>
    %ten = arith.constant 10.0 : f32
    %ok = arith.cmpf ogt, %s, %ten : f32
    cf.assert %ok, "the sum is larger than ten"
    cf.assert %ok, "and it still is"
    %o = memref.alloc() : memref<2x2xf32>
    gpu.launch_func @kernels::@add blocks in (%c2, %c1, %c1) threads in (%c2, %c1, %c1) args(%o : memref<2x2xf32>, %s : f32)
    %v = vector.load %o[%c0, %c0] : memref<2x2xf32>, vector<2x2xf32>
    vector.print %v : vector<2x2xf32>
    gpu.host_unregister %u : memref<*xf32>
    memref.dealloc %m : memref<2x4xf32>
    memref.dealloc %o : memref<2x2xf32>
    return
  }
  func.func private @printMemrefF32(memref<*xf32>)
}
