// RUN: mgpu-tune run %s | FileCheck %s
// RUN: mgpu-tune run %s --target host:2 | FileCheck %s
// RUN: mgpu-tune plan %s --explain | FileCheck %s --check-prefix=PLAN

// Kernels that wait for each other are one launch, and all of their blocks run.
// CHECK: {{^}}2, 2
// CHECK-NEXT: sizes = [2, 4]
// CHECK-NEXT: [28, 28, 28, 28]
// CHECK-NEXT: [28, 28, 28, 28]
// CHECK-NEXT: after: 6
// CHECK-NEXT: ( 5, 5, 5, 5 )
// PLAN: meet

module attributes {gpu.container_module} {
gpu.module @device {
  // Reads by an atomic operation that changes nothing.
  gpu.func @meet(%seen: memref<i32>, %said: memref<2xi32>, %me: index) kernel {
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %both = arith.constant 2 : i32
    %before = memref.atomic_rmw addi %one, %seen[] : (i32, memref<i32>) -> i32
    %last = scf.while : () -> i32 {
      %now = memref.atomic_rmw addi %none, %seen[] : (i32, memref<i32>) -> i32
      %alone = arith.cmpi slt, %now, %both : i32
      scf.condition(%alone) %now : i32
    } do {
    ^bb0(%now: i32):
      scf.yield
    }
    memref.store %last, %said[%me] : memref<2xi32>
    gpu.return
  }
  // Loads, in a loop of blocks; the first thread of each block waits for all.
  gpu.func @add(%left: memref<i64>, %in: memref<?xi32>, %out: memref<2x4xi32>, %row: index)
      workgroup(%sum: memref<1xi32, #gpu.address_space<workgroup>>) kernel {
    %zero = arith.constant 0 : i32
    %c0 = arith.constant 0 : index
    %none = arith.constant 0 : i64
    %less = arith.constant -1 : i64
    %t = gpu.thread_id x
    %i = gpu.global_id x
    %n = gpu.grid_dim x
    %b = gpu.block_id y
    %v = memref.load %in[%i] : memref<?xi32>
    %is = arith.cmpi eq, %t, %c0 : index
    cf.cond_br %is, ^first, ^rest
  ^first:
    memref.store %zero, %sum[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    cf.br ^rest
  ^rest:
    gpu.barrier
    %s = memref.atomic_rmw addi %v, %sum[%c0] : (i32, memref<1xi32, #gpu.address_space<workgroup>>) -> i32
    %l = memref.atomic_rmw addi %less, %left[] : (i64, memref<i64>) -> i64
    cf.cond_br %is, ^wait, ^go
  ^wait:
    %now = memref.load %left[] : memref<i64>
    %others = arith.cmpi sgt, %now, %none : i64
    cf.cond_br %others, ^wait, ^go
  ^go:
    gpu.barrier
    %all = memref.load %sum[%c0] : memref<1xi32, #gpu.address_space<workgroup>>
    %first = arith.cmpi eq, %b, %c0 : index
    cf.cond_br %first, ^keep, ^done
  ^keep:
    %o = memref.atomic_rmw addi %all, %out[%row, %t] : (i32, memref<2x4xi32>) -> i32
    cf.br ^done
  ^done:
    gpu.return
  }
  // Blocks of one launch.
  gpu.func @grid(%seen: memref<i32>, %out: memref<i32>) kernel {
    %none = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %c0 = arith.constant 0 : index
    %b = gpu.block_id x
    %n = gpu.grid_dim x
    %all = arith.index_cast %n : index to i32
    %before = memref.atomic_rmw addi %one, %seen[] : (i32, memref<i32>) -> i32
    scf.while : () -> () {
      %now = memref.atomic_rmw ori %none, %seen[] : (i32, memref<i32>) -> i32
      %more = arith.cmpi ne, %now, %all : i32
      scf.condition(%more)
    } do {
      scf.yield
    }
    %is = arith.cmpi eq, %b, %c0 : index
    scf.if %is {
      %now = memref.load %seen[] : memref<i32>
      memref.store %now, %out[] : memref<i32>
    }
    gpu.return
  }
  // What the other kernel writes behind its barrier.
  gpu.func @consume(%data: memref<4xf32>, %flag: memref<1xi32>, %out: memref<4xf32>) kernel {
    %c0 = arith.constant 0 : index
    %none = arith.constant 0 : i32
    %t = gpu.thread_id x
    scf.while : () -> () {
      %now = memref.atomic_rmw ori %none, %flag[%c0] : (i32, memref<1xi32>) -> i32
      %not = arith.cmpi eq, %now, %none : i32
      scf.condition(%not)
    } do {
      scf.yield
    }
    %v = memref.load %data[%t] : memref<4xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %out[%t] : memref<4xf32>
    gpu.return
  }
  gpu.func @produce(%data: memref<4xf32>, %flag: memref<1xi32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %f = arith.constant 2.5 : f32
    %t = gpu.thread_id x
    memref.store %f, %data[%t] : memref<4xf32>
    gpu.barrier
    %is = arith.cmpi eq, %t, %c0 : index
    scf.if %is {
      %x = memref.atomic_rmw assign %one, %flag[%c0] : (i32, memref<1xi32>) -> i32
    }
    gpu.return
  }
}
func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %none = arith.constant 0 : i32
  %seen = memref.alloc() : memref<i32>
  %said = memref.alloc() : memref<2xi32>
  memref.store %none, %seen[] : memref<i32>
  %q0 = gpu.wait async
  %q1 = gpu.wait async
  %k0 = gpu.launch_func async [%q0] @device::@meet blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%seen : memref<i32>, %said : memref<2xi32>, %c0 : index)
  %k1 = gpu.launch_func async [%q1] @device::@meet blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%seen : memref<i32>, %said : memref<2xi32>, %c1 : index)
  gpu.wait [%k0, %k1]
  %a = memref.load %said[%c0] : memref<2xi32>
  %b = memref.load %said[%c1] : memref<2xi32>
  vector.print %a : i32 punctuation <comma>
  vector.print %b : i32

  // Three launches of 2, 4 and 2 blocks of 4 threads.
  %left = memref.alloc() : memref<i64>
  %threads = arith.constant 32 : i64
  memref.store %threads, %left[] : memref<i64>
  %in = memref.alloc(%c8) : memref<?xi32>
  scf.for %i = %c0 to %c8 step %c1 {
    %v = arith.index_cast %i : index to i32
    memref.store %v, %in[%i] : memref<?xi32>
  }
  %out = memref.alloc() : memref<2x4xi32>
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %none, %out[%i, %j] : memref<2x4xi32>
    }
  }
  %r0 = gpu.wait async
  %r1 = gpu.wait async
  %r2 = gpu.wait async
  %l0 = gpu.launch_func async [%r0] @device::@add blocks in (%c2, %c1, %c1) threads in (%c4, %c1, %c1) args(%left : memref<i64>, %in : memref<?xi32>, %out : memref<2x4xi32>, %c0 : index)
  %l1 = gpu.launch_func async [%r1] @device::@add blocks in (%c2, %c2, %c1) threads in (%c4, %c1, %c1) args(%left : memref<i64>, %in : memref<?xi32>, %out : memref<2x4xi32>, %c1 : index)
  %sub = memref.subview %in[0] [8] [1] : memref<?xi32> to memref<8xi32, strided<[1]>>
  %whole = memref.cast %sub : memref<8xi32, strided<[1]>> to memref<?xi32>
  %spare = memref.alloc() : memref<2x4xi32>
  scf.for %i = %c0 to %c2 step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      memref.store %none, %spare[%i, %j] : memref<2x4xi32>
    }
  }
  %l2 = gpu.launch_func async [%r2] @device::@add blocks in (%c2, %c1, %c1) threads in (%c4, %c1, %c1) args(%left : memref<i64>, %whole : memref<?xi32>, %spare : memref<2x4xi32>, %c0 : index)
  gpu.wait [%l0, %l1, %l2]
  vector.print str "sizes = [2, 4]\n"
  scf.for %i = %c0 to %c2 step %c1 {
    vector.print str "["
    %x = memref.load %out[%i, %c0] : memref<2x4xi32>
    vector.print %x : i32 punctuation <comma>
    %y = memref.load %out[%i, %c1] : memref<2x4xi32>
    vector.print %y : i32 punctuation <comma>
    %z = memref.load %out[%i, %c2] : memref<2x4xi32>
    vector.print %z : i32 punctuation <comma>
    %w = memref.load %out[%i, %c3] : memref<2x4xi32>
    vector.print %w : i32 punctuation <no_punctuation>
    vector.print str "]\n"
  }

  memref.store %none, %seen[] : memref<i32>
  %met = memref.alloc() : memref<i32>
  gpu.launch_func @device::@grid blocks in (%c6, %c1, %c1) threads in (%c1, %c1, %c1) args(%seen : memref<i32>, %met : memref<i32>)
  vector.print str "after: "
  %m = memref.load %met[] : memref<i32>
  vector.print %m : i32

  %data = memref.alloc() : memref<4xf32>
  %twice = memref.alloc() : memref<4xf32>
  %flag = memref.alloc() : memref<1xi32>
  memref.store %none, %flag[%c0] : memref<1xi32>
  %s0 = gpu.wait async
  %s1 = gpu.wait async
  %m0 = gpu.launch_func async [%s0] @device::@consume blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%data : memref<4xf32>, %flag : memref<1xi32>, %twice : memref<4xf32>)
  %m1 = gpu.launch_func async [%s1] @device::@produce blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%data : memref<4xf32>, %flag : memref<1xi32>)
  gpu.wait [%m0, %m1]
  %got = vector.load %twice[%c0] : memref<4xf32>, vector<4xf32>
  vector.print %got : vector<4xf32>
  return
}
}
