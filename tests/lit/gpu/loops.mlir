// RUN: mgpu-tune run %s | FileCheck %s
// RUN: mgpu-tune run %s --roll-from 0 | FileCheck %s

// RUN: mgpu-tune check %s | FileCheck %s --check-prefix=ROLLED

// A loop of launches, which stays rolled, and one that prints in each trip.
// ROLLED: loops.mlir:26:3: rolled, 20 trips
// Kernels print before the host does.
// CHECK: kernel prints 40
// CHECK-NEXT: kernel prints 41
// CHECK-NEXT: kernel prints 42
// CHECK-NEXT: trip ( 41, 40 )
// CHECK-NEXT: trip ( 42, 40 )
// CHECK-NEXT: trip ( 43, 40 )

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c20 = arith.constant 20 : index
  %one = arith.constant 1 : i32
  %zeros = arith.constant dense<0> : vector<2xi32>
  %m = memref.alloc() : memref<2xi32>
  vector.store %zeros, %m[%c0] : memref<2xi32>, vector<2xi32>
  scf.for %i = %c0 to %c20 step %c1 {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c2, %sy = %c1, %sz = %c1) {
      %v = memref.load %m[%tx] : memref<2xi32>
      %w = arith.addi %v, %one : i32
      %x = arith.addi %w, %one : i32
      memref.store %x, %m[%tx] : memref<2xi32>
      gpu.terminator
    }
  }
  scf.for %i = %c0 to %c3 step %c1 {
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      %v = memref.load %m[%c0] : memref<2xi32>
      gpu.printf "kernel prints %d\n", %v : i32
      %w = arith.addi %v, %one : i32
      memref.store %w, %m[%c0] : memref<2xi32>
      gpu.terminator
    }
    %v = vector.load %m[%c0] : memref<2xi32>, vector<2xi32>
    vector.print str "trip "
    vector.print %v : vector<2xi32>
  }
  return
}
