// RUN: split-file %s %t
// RUN: mgpu-tune check %t/ordered.mlir
// RUN: mgpu-tune run %t/ordered.mlir --arg x=iota | FileCheck %s
// RUN: %{exits} 1 mgpu-tune check %t/race.mlir | FileCheck %s --check-prefix=RACE
// RUN: %{exits} 1 mgpu-tune check %t/host.mlir | FileCheck %s --check-prefix=HOST

// CHECK: sizes = [8] strides = [1] data = 
// CHECK-NEXT: {{^}}[8,  8,  8,  8,  8,  8,  8,  8]

// A launch that waits for one of the two before it.
// RACE: race.mlir:14:9: error: race on buffer
// RACE: race.mlir:9:9: note: the earlier use is here

// HOST: host.mlir:4:3: error: 'memref.store' op is host code that touches memory of a device: copy it with gpu.memcpy, or allocate it host_shared
// HOST: host.mlir:3:8: note: allocated here

//--- ordered.mlir
module attributes {gpu.container_module} {
func.func @main(%x: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %seven = arith.constant 7.0 : f32
  %out = memref.alloc() : memref<8xf32>
  %t0 = gpu.wait async
  %a, %t1 = gpu.alloc async [%t0] () : memref<8xf32>
  %b, %t2 = gpu.alloc async [%t0] () : memref<8xf32>
  %t3 = gpu.memcpy async [%t1] %a, %x : memref<8xf32>, memref<8xf32>
  %t4 = gpu.memset async [%t2] %b, %seven : memref<8xf32>, f32
  // Three times b - 1, the token handed on.
  %t5 = scf.for %i = %c0 to %c3 step %c1 iter_args(%t = %t4) -> (!gpu.async.token) {
    %n = gpu.launch async [%t] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                           threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
      %v = memref.load %b[%tx] : memref<8xf32>
      %w = arith.subf %v, %one : f32
      memref.store %w, %b[%tx] : memref<8xf32>
      gpu.terminator
    }
    scf.yield %n : !gpu.async.token
  }
  // 4 + x - x + 4
  %t6 = gpu.launch async [%t3, %t5] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                         threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %v = memref.load %a[%tx] : memref<8xf32>
    %w = memref.load %b[%tx] : memref<8xf32>
    %s = arith.addf %v, %w : f32
    %d = arith.subf %s, %v : f32
    %e = arith.addf %d, %w : f32
    memref.store %e, %b[%tx] : memref<8xf32>
    gpu.terminator
  }
  %t7 = gpu.memcpy async [%t6] %out, %b : memref<8xf32>, memref<8xf32>
  %t8 = gpu.dealloc async [%t7] %a : memref<8xf32>
  gpu.wait [%t7, %t8]
  %u = memref.cast %out : memref<8xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefF32(memref<*xf32>)
}
//--- race.mlir
func.func @main() {
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %one = arith.constant 1.0 : f32
  %a = gpu.alloc () : memref<8xf32>
  %b = gpu.alloc () : memref<8xf32>
  %t0 = gpu.wait async
  %t1 = gpu.memset async [%t0] %a, %one : memref<8xf32>, f32
  %t2 = gpu.memset async [%t0] %b, %one : memref<8xf32>, f32
  gpu.wait [%t1]
  %t3 = gpu.wait async
  // Only what was written to a has arrived.
  //
  %t4 = gpu.launch async [%t1] blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
                         threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %v = memref.load %a[%tx] : memref<8xf32>
    %w = memref.load %b[%tx] : memref<8xf32>
    %s = arith.addf %v, %w : f32
    memref.store %s, %a[%tx] : memref<8xf32>
    gpu.terminator
  }
  gpu.wait [%t4]
  return
}
//--- host.mlir
func.func @main(%v: f32) {
  %c0 = arith.constant 0 : index
  %a = gpu.alloc () : memref<8xf32>
  memref.store %v, %a[%c0] : memref<8xf32>
  return
}
