// RUN: split-file %s %t
// RUN: mgpu-tune check %t/regions.mlir
// RUN: mgpu-tune run %t/regions.mlir | FileCheck %s
// RUN: mgpu-tune run %t/loops.mlir | FileCheck %s --check-prefix=LOOPS
// RUN: mgpu-tune run %t/groups.mlir | FileCheck %s --check-prefix=GROUPS
// RUN: %{exits} 1 mgpu-tune check %t/race.mlir | FileCheck %s --check-prefix=RACE
// RUN: %{exits} 5 mgpu-tune check %t/value.mlir | FileCheck %s --check-prefix=VALUE
// RUN: %{exits} 5 mgpu-tune check %t/function.mlir | FileCheck %s --check-prefix=FUNCTION

// One region writes, two read what it wrote, and one adds what those have.
// CHECK: sizes = [3] strides = [1] data = 
// CHECK-NEXT: {{^}}[11,  22,  33]
// CHECK-NEXT: {{^}}( 5, 10, 15 )

// LOOPS: {{^}}( 40, 41 )

// Each of four regions adds one, and the host prints between.
// GROUPS: {{^}}( 1, 1, 1, 1 )
// GROUPS-NEXT: {{^}}( 2, 2, 2, 2 )

// Neither region waits for the other.
// RACE: race.mlir:11:12: error: race on buffer
// RACE: race.mlir:7:12: note: the earlier use is here

// VALUE: value.mlir:13:8: error: 'async.await' op is or uses a part of the dialect 'async' that has no form here
// FUNCTION: function.mlir:1:1: error: 'async.func' op is or uses a part of the dialect 'async' that has no form here

//--- regions.mlir
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %five = arith.constant dense<[5, 10, 15]> : vector<3xi32>
  %h = memref.alloc(%c3) : memref<?xi32>
  %all = memref.cast %h : memref<?xi32> to memref<*xi32>
  gpu.host_register %all : memref<*xi32>
  vector.store %five, %h[%c0] : memref<?xi32>, vector<3xi32>
  %t0, %r0 = async.execute -> !async.value<memref<?xi32>> {
    %b = gpu.alloc (%c3) : memref<?xi32>
    gpu.memcpy %b, %h : memref<?xi32>, memref<?xi32>
    async.yield %b : memref<?xi32>
  }
  %t1, %r1 = async.execute [%t0] (%r0 as %from : !async.value<memref<?xi32>>) -> !async.value<memref<?xi32>> {
    %b = gpu.alloc (%c3) : memref<?xi32>
    gpu.memcpy %b, %from : memref<?xi32>, memref<?xi32>
    async.yield %b : memref<?xi32>
  }
  %t2, %r2 = async.execute [%t0] (%r0 as %from : !async.value<memref<?xi32>>) -> !async.value<memref<?xi32>> {
    %b = gpu.alloc (%c3) : memref<?xi32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
      %v = memref.load %from[%tx] : memref<?xi32>
      %i = arith.addi %tx, %c1 : index
      %n = arith.index_cast %i : index to i32
      %w = arith.addi %v, %n : i32
      memref.store %w, %b[%tx] : memref<?xi32>
      gpu.terminator
    }
    async.yield %b : memref<?xi32>
  }
  %t3, %r3 = async.execute [%t1, %t2] (%r1 as %one : !async.value<memref<?xi32>>, %r2 as %two : !async.value<memref<?xi32>>) -> !async.value<vector<3xi32>> {
    %was = vector.load %h[%c0] : memref<?xi32>, vector<3xi32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c3, %sy = %c1, %sz = %c1) {
      %v = memref.load %one[%tx] : memref<?xi32>
      %w = memref.load %two[%tx] : memref<?xi32>
      %s = arith.addi %v, %w : i32
      memref.store %s, %h[%tx] : memref<?xi32>
      gpu.terminator
    }
    async.yield %was : vector<3xi32>
  }
  async.await %t3 : !async.token
  func.call @printMemrefI32(%all) : (memref<*xi32>) -> ()
  %was = async.await %r3 : !async.value<vector<3xi32>>
  vector.print %was : vector<3xi32>
  return
}
func.func private @printMemrefI32(memref<*xi32>)
//--- loops.mlir
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c40 = arith.constant 40 : index
  %one = arith.constant 1 : i32
  %start = arith.constant dense<[0, 1]> : vector<2xi32>
  %m = memref.alloc() : memref<2xi32>
  vector.store %start, %m[%c0] : memref<2xi32>, vector<2xi32>
  %t0 = async.execute {
    async.yield
  }
  // Trip behind trip, the token handed on.
  %last = scf.for %i = %c0 to %c40 step %c1 iter_args(%t = %t0) -> !async.token {
    %n = async.execute [%t] {
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c2, %sy = %c1, %sz = %c1) {
        %v = memref.load %m[%tx] : memref<2xi32>
        %w = arith.addi %v, %one : i32
        memref.store %w, %m[%tx] : memref<2xi32>
        gpu.terminator
      }
      async.yield
    }
    scf.yield %n : !async.token
  }
  async.await %last : !async.token
  %v = vector.load %m[%c0] : memref<2xi32>, vector<2xi32>
  vector.print %v : vector<2xi32>
  return
}
//--- groups.mlir
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %one = arith.constant 1 : i32
  %zeros = arith.constant dense<0> : vector<4xi32>
  %m = memref.alloc() : memref<4xi32>
  vector.store %zeros, %m[%c0] : memref<4xi32>, vector<4xi32>
  %group = async.create_group %c4 : !async.group
  scf.for %i = %c0 to %c4 step %c1 {
    %t = async.execute {
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
        %v = memref.load %m[%i] : memref<4xi32>
        %w = arith.addi %v, %one : i32
        memref.store %w, %m[%i] : memref<4xi32>
        gpu.terminator
      }
      async.yield
    }
    %place = async.add_to_group %t, %group : !async.token
  }
  async.await_all %group
  %v = vector.load %m[%c0] : memref<4xi32>, vector<4xi32>
  vector.print %v : vector<4xi32>
  // A region in another, awaited there.
  %outer = async.execute {
    %inner = async.execute {
      gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                 threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
        %u = memref.load %m[%tx] : memref<4xi32>
        %w = arith.addi %u, %one : i32
        memref.store %w, %m[%tx] : memref<4xi32>
        gpu.terminator
      }
      async.yield
    }
    async.await %inner : !async.token
    %u = vector.load %m[%c0] : memref<4xi32>, vector<4xi32>
    vector.print %u : vector<4xi32>
    async.yield
  }
  async.await %outer : !async.token
  return
}
//--- race.mlir
func.func @main() {
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %m = gpu.alloc () : memref<8xf32>
  %t0 = async.execute {
    // One region writes it,
           gpu.memset %m, %one : memref<8xf32>, f32
    async.yield
  }
  %t1 = async.execute {
           gpu.memset %m, %two : memref<8xf32>, f32
    async.yield
  }
  async.await %t0 : !async.token
  async.await %t1 : !async.token
  return
}
//--- value.mlir
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t0, %r0 = async.execute -> !async.value<f32> {
    %one = arith.constant 1.0 : f32
    async.yield %one : f32
  }
  // A value, not a token.
  %r1 = scf.for %i = %c0 to %c4 step %c1 iter_args(%r = %r0) -> !async.value<f32> {
    scf.yield %r : !async.value<f32>
  }
  %v = async.await %r1 : !async.value<f32>
  vector.print %v : f32
  return
}
//--- function.mlir
async.func @f() -> !async.token {
  return
}
func.func @main() {
  return
}
