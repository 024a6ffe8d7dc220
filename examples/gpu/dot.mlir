// A program of MLIR's gpu dialect, as its users write it: nothing of mgpu in it.
// The dot product of 0, 1, 2, ... and twos: each block of 64 threads adds its
// products up, and the host prints the four sums and their sum.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @dot(%x: memref<256xf32>, %y: memref<256xf32>, %sums: memref<4xf32>) kernel
        attributes {known_block_size = array<i32: 64, 1, 1>} {
      %b = gpu.block_id x
      %i = gpu.global_id x
      %u = memref.load %x[%i] : memref<256xf32>
      %v = memref.load %y[%i] : memref<256xf32>
      %p = arith.mulf %u, %v : f32
      %s = gpu.all_reduce add %p uniform {} : (f32) -> f32
      memref.store %s, %sums[%b] : memref<4xf32>
      gpu.return
    }
  }

  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %zero = arith.constant 0.0 : f32
    %two = arith.constant 2.0 : f32

    // x is filled here and registered for the device; y is the device's own.
    %x = memref.alloc() : memref<256xf32>
    %any = memref.cast %x : memref<256xf32> to memref<*xf32>
    gpu.host_register %any : memref<*xf32>
    scf.for %i = %c0 to %c256 step %c1 {
      %n = arith.index_cast %i : index to i32
      %f = arith.sitofp %n : i32 to f32
      memref.store %f, %x[%i] : memref<256xf32>
    }
    %sums = memref.alloc() : memref<4xf32>

    %t0 = gpu.wait async
    %y, %t1 = gpu.alloc async [%t0] () : memref<256xf32>
    %t2 = gpu.memset async [%t1] %y, %two : memref<256xf32>, f32
    %t3 = gpu.launch_func async [%t2] @kernels::@dot
        blocks in (%c4, %c1, %c1) threads in (%c64, %c1, %c1)
        args(%x : memref<256xf32>, %y : memref<256xf32>, %sums : memref<4xf32>)
    gpu.wait [%t3]

    %all = memref.cast %sums : memref<4xf32> to memref<*xf32>
    call @printMemrefF32(%all) : (memref<*xf32>) -> ()
    %sum = scf.for %i = %c0 to %c4 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %s = memref.load %sums[%i] : memref<4xf32>
      %more = arith.addf %so_far, %s : f32
      scf.yield %more : f32
    }
    vector.print %sum : f32
    return
  }
  func.func private @printMemrefF32(memref<*xf32>)
}
