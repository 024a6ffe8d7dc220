// RUN: mgpu-tune run %s | FileCheck %s
// RUN: mgpu-tune plan %s --explain | FileCheck %s --check-prefix=PLAN
// RUN: sed 's/gpu.set_default_device %%again//' %s > %t.mlir
// RUN: %{exits} 5 mgpu-tune check %t.mlir | FileCheck %s --check-prefix=UNCLEAR

// Each device adds its number to its own memory, and both to the host's.
// CHECK: sizes = [4] strides = [1] data = 
// CHECK-NEXT: {{^}}[3,  3,  3,  3]
// PLAN: device 0: kernels
// PLAN: device 1: kernels
// UNCLEAR: error: 'gpu.launch' op runs on a default device that depends on loops, branches or calls before it; choose it here with gpu.set_default_device

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %first = arith.constant 0 : i32
  %again = arith.constant 1 : i32
  %m = memref.alloc() : memref<4xi32>
  %zero = arith.constant 0 : i32
  scf.for %i = %c0 to %c4 step %c1 {
    memref.store %zero, %m[%i] : memref<4xi32>
  }
  scf.for %d = %c0 to %c2 step %c1 {
    %n = arith.index_cast %d : index to i32
    gpu.set_default_device %n
    %b = gpu.alloc () : memref<4xi32>
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
      memref.store %n, %b[%tx] : memref<4xi32>
      %v = memref.load %m[%tx] : memref<4xi32>
      %w = arith.addi %v, %n : i32
      memref.store %w, %m[%tx] : memref<4xi32>
      gpu.terminator
    }
    gpu.dealloc %b : memref<4xi32>
  }
  gpu.set_default_device %again
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c4, %sy = %c1, %sz = %c1) {
    %two = arith.constant 2 : i32
    %v = memref.load %m[%tx] : memref<4xi32>
    %w = arith.addi %v, %two : i32
    memref.store %w, %m[%tx] : memref<4xi32>
    gpu.terminator
  }
  %u = memref.cast %m : memref<4xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
