// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels that `mgpu-tune calibrate` measures a machine with: it takes them
// one by one, in this order (tools/mgpu-tune/CalibrateCommand.cpp). As a
// program it means nothing.

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%x: memref<4194304xf32>,
                %y: memref<4194304xf32>,
                %z: memref<65536xf32>,
                %a: memref<512x512xf32>,
                %b: memref<512x512xf32>,
                %c: memref<512x512xf32>,
                %p: memref<256x256xbf16>,
                %q: memref<256x256xbf16>,
                %r: memref<256x256xbf16>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c256 = arith.constant 256 : index
  %blocks = arith.constant 16384 : index
  %few = arith.constant 256 : index
  %rounds = arith.constant 512 : index
  %scale = arith.constant 0.5 : f32
  %add = arith.constant 0.25 : f32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %x0 = mgpu.alloc %d0 : !mgpu.device -> memref<4194304xf32>
  %y0 = mgpu.alloc %d0 : !mgpu.device -> memref<4194304xf32>
  %z0 = mgpu.alloc %d0 : !mgpu.device -> memref<65536xf32>
  %a0 = mgpu.alloc %d0 : !mgpu.device -> memref<512x512xf32>
  %b0 = mgpu.alloc %d0 : !mgpu.device -> memref<512x512xf32>
  %c0m = mgpu.alloc %d0 : !mgpu.device -> memref<512x512xf32>
  %p0 = mgpu.alloc %d0 : !mgpu.device -> memref<256x256xbf16>
  %q0 = mgpu.alloc %d0 : !mgpu.device -> memref<256x256xbf16>
  %r0 = mgpu.alloc %d0 : !mgpu.device -> memref<256x256xbf16>
  mgpu.memcpy %x0, %x, %d0, %host stream %s0 : !mgpu.stream : memref<4194304xf32>, memref<4194304xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %y0, %y, %d0, %host stream %s0 : !mgpu.stream : memref<4194304xf32>, memref<4194304xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %z0, %z, %d0, %host stream %s0 : !mgpu.stream : memref<65536xf32>, memref<65536xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %a0, %a, %d0, %host stream %s0 : !mgpu.stream : memref<512x512xf32>, memref<512x512xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b0, %b, %d0, %host stream %s0 : !mgpu.stream : memref<512x512xf32>, memref<512x512xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %c0m, %c, %d0, %host stream %s0 : !mgpu.stream : memref<512x512xf32>, memref<512x512xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %p0, %p, %d0, %host stream %s0 : !mgpu.stream : memref<256x256xbf16>, memref<256x256xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %q0, %q, %d0, %host stream %s0 : !mgpu.stream : memref<256x256xbf16>, memref<256x256xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %r0, %r, %d0, %host stream %s0 : !mgpu.stream : memref<256x256xbf16>, memref<256x256xbf16>, !mgpu.device, !mgpu.device

  // Memory: y = s x + y, 12 bytes and 2 operations for each element.
  mgpu.launch %d0 grid(%blocks) block(%c256) stream %s0 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %c256 : index
    %i = arith.addi %base, %thread : index
    %xi = memref.load %x0[%i] : memref<4194304xf32>
    %yi = memref.load %y0[%i] : memref<4194304xf32>
    %sx = arith.mulf %xi, %scale : f32
    %sum = arith.addf %sx, %yi : f32
    memref.store %sum, %y0[%i] : memref<4194304xf32>
  }

  // Arithmetic: four chains of 512 multiplications and additions in each of
  // 65536 threads.
  mgpu.launch %d0 grid(%few) block(%c256) stream %s0 {
    %block = gpu.block_id x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %c256 : index
    %i = arith.addi %base, %thread : index
    %start = memref.load %z0[%i] : memref<65536xf32>
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
    memref.store %all, %z0[%i] : memref<65536xf32>
  }

  // Products, of f32 and of bf16. linalg knows no stream.
  mgpu.sync_stream %s0 : !mgpu.stream
  linalg.matmul ins(%a0, %b0 : memref<512x512xf32>, memref<512x512xf32>) outs(%c0m : memref<512x512xf32>)
  linalg.matmul ins(%p0, %q0 : memref<256x256xbf16>, memref<256x256xbf16>) outs(%r0 : memref<256x256xbf16>)
  mgpu.memcpy %x, %x0, %host, %d0 stream %s0 : !mgpu.stream : memref<4194304xf32>, memref<4194304xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %y, %y0, %host, %d0 stream %s0 : !mgpu.stream : memref<4194304xf32>, memref<4194304xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %z, %z0, %host, %d0 stream %s0 : !mgpu.stream : memref<65536xf32>, memref<65536xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %a, %a0, %host, %d0 stream %s0 : !mgpu.stream : memref<512x512xf32>, memref<512x512xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b, %b0, %host, %d0 stream %s0 : !mgpu.stream : memref<512x512xf32>, memref<512x512xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %c, %c0m, %host, %d0 stream %s0 : !mgpu.stream : memref<512x512xf32>, memref<512x512xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %p, %p0, %host, %d0 stream %s0 : !mgpu.stream : memref<256x256xbf16>, memref<256x256xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %q, %q0, %host, %d0 stream %s0 : !mgpu.stream : memref<256x256xbf16>, memref<256x256xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %r, %r0, %host, %d0 stream %s0 : !mgpu.stream : memref<256x256xbf16>, memref<256x256xbf16>, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.free %x0, %d0 : memref<4194304xf32>, !mgpu.device
  mgpu.free %y0, %d0 : memref<4194304xf32>, !mgpu.device
  mgpu.free %z0, %d0 : memref<65536xf32>, !mgpu.device
  mgpu.free %a0, %d0 : memref<512x512xf32>, !mgpu.device
  mgpu.free %b0, %d0 : memref<512x512xf32>, !mgpu.device
  mgpu.free %c0m, %d0 : memref<512x512xf32>, !mgpu.device
  mgpu.free %p0, %d0 : memref<256x256xbf16>, !mgpu.device
  mgpu.free %q0, %d0 : memref<256x256xbf16>, !mgpu.device
  mgpu.free %r0, %d0 : memref<256x256xbf16>, !mgpu.device
  return
}
