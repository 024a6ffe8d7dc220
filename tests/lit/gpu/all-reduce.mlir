// RUN: mgpu-tune run %s | FileCheck %s

// gpu.all_reduce of every kind, of a block of 8 threads.
// CHECK: sizes = [9] strides = [1] data = 
// CHECK-NEXT: {{\[}}31,  -65520,  -5,  13,  1,  -5,  0,  -1,  -13]
// CHECK: sizes = [6] strides = [1] data = 
// CHECK-NEXT: {{\[}}9.75,  -126,  -7,  6,  -7,  6]

func.func @main() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c6 = arith.constant 6 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %i = arith.constant dense<[-5, 3, 7, 6, 1, 2, 13, 4]> : vector<8xi32>
  %f = arith.constant dense<[0.5, 3.0, -7.0, 6.0, 1.0, 2.0, 0.25, 4.0]> : vector<8xf32>
  %x = memref.alloc() : memref<8xi32>
  %y = memref.alloc() : memref<8xf32>
  %a = memref.alloc() : memref<9xi32>
  %b = memref.alloc() : memref<6xf32>
  vector.store %i, %x[%c0] : memref<8xi32>, vector<8xi32>
  vector.store %f, %y[%c0] : memref<8xf32>, vector<8xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c8, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%tx] : memref<8xi32>
    %w = memref.load %y[%tx] : memref<8xf32>
    %i0 = gpu.all_reduce add %v uniform {} : (i32) -> i32
    memref.store %i0, %a[%c0] : memref<9xi32>
    %i1 = gpu.all_reduce mul %v uniform {} : (i32) -> i32
    memref.store %i1, %a[%c1] : memref<9xi32>
    %i2 = gpu.all_reduce minsi %v uniform {} : (i32) -> i32
    memref.store %i2, %a[%c2] : memref<9xi32>
    %i3 = gpu.all_reduce maxsi %v uniform {} : (i32) -> i32
    memref.store %i3, %a[%c3] : memref<9xi32>
    %i4 = gpu.all_reduce minui %v uniform {} : (i32) -> i32
    memref.store %i4, %a[%c4] : memref<9xi32>
    %i5 = gpu.all_reduce maxui %v uniform {} : (i32) -> i32
    memref.store %i5, %a[%c5] : memref<9xi32>
    %i6 = gpu.all_reduce and %v uniform {} : (i32) -> i32
    memref.store %i6, %a[%c6] : memref<9xi32>
    %i7 = gpu.all_reduce or %v uniform {} : (i32) -> i32
    memref.store %i7, %a[%c7] : memref<9xi32>
    %i8 = gpu.all_reduce xor %v uniform {} : (i32) -> i32
    memref.store %i8, %a[%c8] : memref<9xi32>
    %f0 = gpu.all_reduce add %w uniform {} : (f32) -> f32
    memref.store %f0, %b[%c0] : memref<6xf32>
    %f1 = gpu.all_reduce mul %w uniform {} : (f32) -> f32
    memref.store %f1, %b[%c1] : memref<6xf32>
    %f2 = gpu.all_reduce minnumf %w uniform {} : (f32) -> f32
    memref.store %f2, %b[%c2] : memref<6xf32>
    %f3 = gpu.all_reduce maxnumf %w uniform {} : (f32) -> f32
    memref.store %f3, %b[%c3] : memref<6xf32>
    %f4 = gpu.all_reduce minimumf %w uniform {} : (f32) -> f32
    memref.store %f4, %b[%c4] : memref<6xf32>
    %f5 = gpu.all_reduce maximumf %w uniform {} : (f32) -> f32
    memref.store %f5, %b[%c5] : memref<6xf32>
    gpu.terminator
  }
  %u = memref.cast %a : memref<9xi32> to memref<*xi32>
  call @printMemrefI32(%u) : (memref<*xi32>) -> ()
  %t = memref.cast %b : memref<6xf32> to memref<*xf32>
  call @printMemrefF32(%t) : (memref<*xf32>) -> ()
  return
}
func.func private @printMemrefI32(memref<*xi32>)
func.func private @printMemrefF32(memref<*xf32>)
