// RUN: mgpu-tune run %s --arg x=iota --arg n=8 --out x=%t.npy --out r0=%t0.npy | FileCheck %s
// RUN: %python -c "import struct, sys; print(*[struct.unpack('<8f', open(f, 'rb').read()[-32:])[7] for f in sys.argv[1:]])" %t.npy %t0.npy | FileCheck %s --check-prefix=NUMBERS

// An argument that a launch writes, memory of a size that is an argument, and a
// result.
// CHECK: {{\[}}0,  1,  2,  3,  4,  5,  6,  7]
// NUMBERS: 14.0 7.0

func.func @main(%x: memref<8xf32>, %n: index) -> memref<8xf32> {
  %c1 = arith.constant 1 : index
  %m = memref.alloc(%n) : memref<?xf32>
  %d = memref.cast %m : memref<?xf32> to memref<8xf32>
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %n, %sy = %c1, %sz = %c1) {
    %v = memref.load %x[%tx] : memref<8xf32>
    memref.store %v, %d[%tx] : memref<8xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%tx] : memref<8xf32>
    gpu.terminator
  }
  %u = memref.cast %d : memref<8xf32> to memref<*xf32>
  call @printMemrefF32(%u) : (memref<*xf32>) -> ()
  return %d : memref<8xf32>
}
func.func private @printMemrefF32(memref<*xf32>)
