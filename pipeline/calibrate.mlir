// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels that `mgpu-tune calibrate` measures a machine with: it takes them
// one by one, in this order (tools/mgpu-tune/CalibrateCommand.cpp). As a
// program it means nothing. The sizes are the host's; calibrate-gpu.mlir, which
// the build writes beside itself, has a GPU's (CMakeLists.txt).

!array = memref<4194304xf32>
#blocks = 16384 : index
!numbers = memref<65536xf32>
#few = 256 : index
!square = memref<512x512xf32>
!narrow = memref<256x256xbf16>

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%x: !array,
                %y: !array,
                %z: !numbers,
                %a: !square,
                %b: !square,
                %c: !square,
                %p: !narrow,
                %q: !narrow,
                %r: !narrow) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %blocks = arith.constant #blocks
  %few = arith.constant #few
  %rounds = arith.constant 512 : index
  %scale = arith.constant 0.5 : f32
  %add = arith.constant 0.25 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %x0 = mgpu.alloc %d0 : !mgpu.device -> !array
  %y0 = mgpu.alloc %d0 : !mgpu.device -> !array
  %z0 = mgpu.alloc %d0 : !mgpu.device -> !numbers
  %a0 = mgpu.alloc %d0 : !mgpu.device -> !square
  %b0 = mgpu.alloc %d0 : !mgpu.device -> !square
  %c0m = mgpu.alloc %d0 : !mgpu.device -> !square
  %p0 = mgpu.alloc %d0 : !mgpu.device -> !narrow
  %q0 = mgpu.alloc %d0 : !mgpu.device -> !narrow
  %r0 = mgpu.alloc %d0 : !mgpu.device -> !narrow
  mgpu.memcpy %x0, %x, %d0, %host stream %s0 : !mgpu.stream : !array, !array, !mgpu.device, !mgpu.device
  mgpu.memcpy %y0, %y, %d0, %host stream %s0 : !mgpu.stream : !array, !array, !mgpu.device, !mgpu.device
  mgpu.memcpy %z0, %z, %d0, %host stream %s0 : !mgpu.stream : !numbers, !numbers, !mgpu.device, !mgpu.device
  mgpu.memcpy %a0, %a, %d0, %host stream %s0 : !mgpu.stream : !square, !square, !mgpu.device, !mgpu.device
  mgpu.memcpy %b0, %b, %d0, %host stream %s0 : !mgpu.stream : !square, !square, !mgpu.device, !mgpu.device
  mgpu.memcpy %c0m, %c, %d0, %host stream %s0 : !mgpu.stream : !square, !square, !mgpu.device, !mgpu.device
  mgpu.memcpy %p0, %p, %d0, %host stream %s0 : !mgpu.stream : !narrow, !narrow, !mgpu.device, !mgpu.device
  mgpu.memcpy %q0, %q, %d0, %host stream %s0 : !mgpu.stream : !narrow, !narrow, !mgpu.device, !mgpu.device
  mgpu.memcpy %r0, %r, %d0, %host stream %s0 : !mgpu.stream : !narrow, !narrow, !mgpu.device, !mgpu.device

  // Memory: y = s x + y, 12 bytes and 2 operations for each element.
  mgpu.launch %d0 grid(%blocks) block(%c256) stream %s0 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %c256 : index
    %i = arith.addi %base, %thread : index
    %xi = memref.load %x0[%i] : !array
    %yi = memref.load %y0[%i] : !array
    %sx = arith.mulf %xi, %scale : f32
    %sum = arith.addf %sx, %yi : f32
    memref.store %sum, %y0[%i] : !array
  }

  // Arithmetic: four chains of 512 multiplications and additions in each thread.
  mgpu.launch %d0 grid(%few) block(%c256) stream %s0 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %c256 : index
    %i = arith.addi %base, %thread : index
    %start = memref.load %z0[%i] : !numbers
    %u1 = arith.addf %start, %add : f32
    %u2 = arith.addf %u1, %add : f32
    %u3 = arith.addf %u2, %add : f32
    %e:4 = scf.for %k = %c0 to %rounds step %c1 iter_args(%v0 = %start, %v1 = %u1, %v2 = %u2, %v3 = %u3) -> (f32, f32, f32, f32) {
      %w0 = math.fma %v0, %scale, %add : f32
      %w1 = math.fma %v1, %scale, %add : f32
      %w2 = math.fma %v2, %scale, %add : f32
      %w3 = math.fma %v3, %scale, %add : f32
      scf.yield %w0, %w1, %w2, %w3 : f32, f32, f32, f32
    }
    %s01 = arith.addf %e#0, %e#1 : f32
    %s23 = arith.addf %e#2, %e#3 : f32
    %all = arith.addf %s01, %s23 : f32
    memref.store %all, %z0[%i] : !numbers
  }

  // Products, of f32 and of bf16. linalg knows no stream.
  mgpu.sync_stream %s0 : !mgpu.stream
  linalg.matmul ins(%a0, %b0 : !square, !square) outs(%c0m : !square)
  linalg.matmul ins(%p0, %q0 : !narrow, !narrow) outs(%r0 : !narrow)
  mgpu.memcpy %x, %x0, %host, %d0 stream %s0 : !mgpu.stream : !array, !array, !mgpu.device, !mgpu.device
  mgpu.memcpy %y, %y0, %host, %d0 stream %s0 : !mgpu.stream : !array, !array, !mgpu.device, !mgpu.device
  mgpu.memcpy %z, %z0, %host, %d0 stream %s0 : !mgpu.stream : !numbers, !numbers, !mgpu.device, !mgpu.device
  mgpu.memcpy %a, %a0, %host, %d0 stream %s0 : !mgpu.stream : !square, !square, !mgpu.device, !mgpu.device
  mgpu.memcpy %b, %b0, %host, %d0 stream %s0 : !mgpu.stream : !square, !square, !mgpu.device, !mgpu.device
  mgpu.memcpy %c, %c0m, %host, %d0 stream %s0 : !mgpu.stream : !square, !square, !mgpu.device, !mgpu.device
  mgpu.memcpy %p, %p0, %host, %d0 stream %s0 : !mgpu.stream : !narrow, !narrow, !mgpu.device, !mgpu.device
  mgpu.memcpy %q, %q0, %host, %d0 stream %s0 : !mgpu.stream : !narrow, !narrow, !mgpu.device, !mgpu.device
  mgpu.memcpy %r, %r0, %host, %d0 stream %s0 : !mgpu.stream : !narrow, !narrow, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.free %x0, %d0 : !array, !mgpu.device
  mgpu.free %y0, %d0 : !array, !mgpu.device
  mgpu.free %z0, %d0 : !numbers, !mgpu.device
  mgpu.free %a0, %d0 : !square, !mgpu.device
  mgpu.free %b0, %d0 : !square, !mgpu.device
  mgpu.free %c0m, %d0 : !square, !mgpu.device
  mgpu.free %p0, %d0 : !narrow, !mgpu.device
  mgpu.free %q0, %d0 : !narrow, !mgpu.device
  mgpu.free %r0, %d0 : !narrow, !mgpu.device
  return
}
