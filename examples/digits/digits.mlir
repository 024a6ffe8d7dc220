// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Trains a 64-32-10 network on handwritten digits with data parallelism: one replay
// of @main is one step of full-batch gradient descent on the softmax cross-entropy.
// Each of the four devices holds a quarter of the rows and all the weights; the
// all_reduce adds the gradients, so every device makes the same update.
//
// w1 and w2 are stored plus 0.5: random:SEED draws from [0, 1), which makes the
// weights themselves uniform in [-0.5, 0.5). Pixels are 0..16 and scaled by 1/16.
//
// @eval applies the network to rows held back from training.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

func.func @main(%x: memref<1436x64xf32> {mgpu.role = "resident"},
                %y: memref<1436xi32> {mgpu.role = "resident"},
                %w1: memref<64x32xf32> {mgpu.role = "resident"},
                %b1: memref<32xf32> {mgpu.role = "resident"},
                %w2: memref<32x10xf32> {mgpu.role = "resident"},
                %b2: memref<10xf32> {mgpu.role = "resident"},
                %rate: f32) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %d2 = mgpu.get_device %c2 : !mgpu.device
  %d3 = mgpu.get_device %c3 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d1 : !mgpu.device -> !mgpu.stream
  %s2 = mgpu.create_stream %d2 : !mgpu.device -> !mgpu.stream
  %s3 = mgpu.create_stream %d3 : !mgpu.device -> !mgpu.stream
  %comm = mgpu.create_communicator %d0, %d1, %d2, %d3 : !mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device -> !mgpu.communicator
  %c10 = arith.constant 10 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c359 = arith.constant 359 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %sixteenth = arith.constant 0.0625 : f32
  // 1 / 1436: the loss is the mean over all rows.
  %perRow = arith.constant 6.9637883E-4 : f32

  %x0 = mgpu.alloc %d0 : !mgpu.device -> memref<359x64xf32>
  %x1 = mgpu.alloc %d1 : !mgpu.device -> memref<359x64xf32>
  %x2 = mgpu.alloc %d2 : !mgpu.device -> memref<359x64xf32>
  %x3 = mgpu.alloc %d3 : !mgpu.device -> memref<359x64xf32>
  %y0 = mgpu.alloc %d0 : !mgpu.device -> memref<359xi32>
  %y1 = mgpu.alloc %d1 : !mgpu.device -> memref<359xi32>
  %y2 = mgpu.alloc %d2 : !mgpu.device -> memref<359xi32>
  %y3 = mgpu.alloc %d3 : !mgpu.device -> memref<359xi32>
  %w10 = mgpu.alloc %d0 : !mgpu.device -> memref<64x32xf32>
  %w11 = mgpu.alloc %d1 : !mgpu.device -> memref<64x32xf32>
  %w12 = mgpu.alloc %d2 : !mgpu.device -> memref<64x32xf32>
  %w13 = mgpu.alloc %d3 : !mgpu.device -> memref<64x32xf32>
  %b10 = mgpu.alloc %d0 : !mgpu.device -> memref<32xf32>
  %b11 = mgpu.alloc %d1 : !mgpu.device -> memref<32xf32>
  %b12 = mgpu.alloc %d2 : !mgpu.device -> memref<32xf32>
  %b13 = mgpu.alloc %d3 : !mgpu.device -> memref<32xf32>
  %w20 = mgpu.alloc %d0 : !mgpu.device -> memref<32x10xf32>
  %w21 = mgpu.alloc %d1 : !mgpu.device -> memref<32x10xf32>
  %w22 = mgpu.alloc %d2 : !mgpu.device -> memref<32x10xf32>
  %w23 = mgpu.alloc %d3 : !mgpu.device -> memref<32x10xf32>
  %b20 = mgpu.alloc %d0 : !mgpu.device -> memref<10xf32>
  %b21 = mgpu.alloc %d1 : !mgpu.device -> memref<10xf32>
  %b22 = mgpu.alloc %d2 : !mgpu.device -> memref<10xf32>
  %b23 = mgpu.alloc %d3 : !mgpu.device -> memref<10xf32>
  %gw10 = mgpu.alloc %d0 : !mgpu.device -> memref<64x32xf32>
  %gw11 = mgpu.alloc %d1 : !mgpu.device -> memref<64x32xf32>
  %gw12 = mgpu.alloc %d2 : !mgpu.device -> memref<64x32xf32>
  %gw13 = mgpu.alloc %d3 : !mgpu.device -> memref<64x32xf32>
  %gb10 = mgpu.alloc %d0 : !mgpu.device -> memref<32xf32>
  %gb11 = mgpu.alloc %d1 : !mgpu.device -> memref<32xf32>
  %gb12 = mgpu.alloc %d2 : !mgpu.device -> memref<32xf32>
  %gb13 = mgpu.alloc %d3 : !mgpu.device -> memref<32xf32>
  %gw20 = mgpu.alloc %d0 : !mgpu.device -> memref<32x10xf32>
  %gw21 = mgpu.alloc %d1 : !mgpu.device -> memref<32x10xf32>
  %gw22 = mgpu.alloc %d2 : !mgpu.device -> memref<32x10xf32>
  %gw23 = mgpu.alloc %d3 : !mgpu.device -> memref<32x10xf32>
  %gb20 = mgpu.alloc %d0 : !mgpu.device -> memref<10xf32>
  %gb21 = mgpu.alloc %d1 : !mgpu.device -> memref<10xf32>
  %gb22 = mgpu.alloc %d2 : !mgpu.device -> memref<10xf32>
  %gb23 = mgpu.alloc %d3 : !mgpu.device -> memref<10xf32>
  %h0 = mgpu.alloc %d0 : !mgpu.device -> memref<359x32xf32>
  %h1 = mgpu.alloc %d1 : !mgpu.device -> memref<359x32xf32>
  %h2 = mgpu.alloc %d2 : !mgpu.device -> memref<359x32xf32>
  %h3 = mgpu.alloc %d3 : !mgpu.device -> memref<359x32xf32>
  %z0 = mgpu.alloc %d0 : !mgpu.device -> memref<359x10xf32>
  %z1 = mgpu.alloc %d1 : !mgpu.device -> memref<359x10xf32>
  %z2 = mgpu.alloc %d2 : !mgpu.device -> memref<359x10xf32>
  %z3 = mgpu.alloc %d3 : !mgpu.device -> memref<359x10xf32>
  %dz0 = mgpu.alloc %d0 : !mgpu.device -> memref<359x10xf32>
  %dz1 = mgpu.alloc %d1 : !mgpu.device -> memref<359x10xf32>
  %dz2 = mgpu.alloc %d2 : !mgpu.device -> memref<359x10xf32>
  %dz3 = mgpu.alloc %d3 : !mgpu.device -> memref<359x10xf32>
  %dh0 = mgpu.alloc %d0 : !mgpu.device -> memref<359x32xf32>
  %dh1 = mgpu.alloc %d1 : !mgpu.device -> memref<359x32xf32>
  %dh2 = mgpu.alloc %d2 : !mgpu.device -> memref<359x32xf32>
  %dh3 = mgpu.alloc %d3 : !mgpu.device -> memref<359x32xf32>

  mgpu.scatter %x, %host, [%x0, %x1, %x2, %x3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<1436x64xf32>, !mgpu.device, [memref<359x64xf32>, memref<359x64xf32>, memref<359x64xf32>, memref<359x64xf32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.scatter %y, %host, [%y0, %y1, %y2, %y3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<1436xi32>, !mgpu.device, [memref<359xi32>, memref<359xi32>, memref<359xi32>, memref<359xi32>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.replicate %w1, %host, [%d0, %d1, %d2, %d3], [%w10, %w11, %w12, %w13] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream
      : memref<64x32xf32>, !mgpu.device, [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device], [memref<64x32xf32>, memref<64x32xf32>, memref<64x32xf32>, memref<64x32xf32>]
  mgpu.replicate %b1, %host, [%d0, %d1, %d2, %d3], [%b10, %b11, %b12, %b13] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream
      : memref<32xf32>, !mgpu.device, [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device], [memref<32xf32>, memref<32xf32>, memref<32xf32>, memref<32xf32>]
  mgpu.replicate %w2, %host, [%d0, %d1, %d2, %d3], [%w20, %w21, %w22, %w23] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream
      : memref<32x10xf32>, !mgpu.device, [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device], [memref<32x10xf32>, memref<32x10xf32>, memref<32x10xf32>, memref<32x10xf32>]
  mgpu.replicate %b2, %host, [%d0, %d1, %d2, %d3], [%b20, %b21, %b22, %b23] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream
      : memref<10xf32>, !mgpu.device, [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device], [memref<10xf32>, memref<10xf32>, memref<10xf32>, memref<10xf32>]

  // Forward: h = relu(x * w1 + b1), z = h * w2 + b2.
  mgpu.launch %d0 grid(%c359) block(%c32) stream %s0 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %bias = memref.load %b10[%j] : memref<32xf32>
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %bias) -> (f32) {
      %pixel = memref.load %x0[%i, %k] : memref<359x64xf32>
      %xv = arith.mulf %pixel, %sixteenth : f32
      %stored = memref.load %w10[%k, %j] : memref<64x32xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h0[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d1 grid(%c359) block(%c32) stream %s1 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %bias = memref.load %b11[%j] : memref<32xf32>
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %bias) -> (f32) {
      %pixel = memref.load %x1[%i, %k] : memref<359x64xf32>
      %xv = arith.mulf %pixel, %sixteenth : f32
      %stored = memref.load %w11[%k, %j] : memref<64x32xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h1[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d2 grid(%c359) block(%c32) stream %s2 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %bias = memref.load %b12[%j] : memref<32xf32>
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %bias) -> (f32) {
      %pixel = memref.load %x2[%i, %k] : memref<359x64xf32>
      %xv = arith.mulf %pixel, %sixteenth : f32
      %stored = memref.load %w12[%k, %j] : memref<64x32xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h2[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d3 grid(%c359) block(%c32) stream %s3 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %bias = memref.load %b13[%j] : memref<32xf32>
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %bias) -> (f32) {
      %pixel = memref.load %x3[%i, %k] : memref<359x64xf32>
      %xv = arith.mulf %pixel, %sixteenth : f32
      %stored = memref.load %w13[%k, %j] : memref<64x32xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h3[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d0 grid(%c359) block(%c10) stream %s0 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %bias = memref.load %b20[%c] : memref<10xf32>
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %bias) -> (f32) {
      %hv = memref.load %h0[%i, %k] : memref<359x32xf32>
      %stored = memref.load %w20[%k, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %z0[%i, %c] : memref<359x10xf32>
  }
  mgpu.launch %d1 grid(%c359) block(%c10) stream %s1 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %bias = memref.load %b21[%c] : memref<10xf32>
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %bias) -> (f32) {
      %hv = memref.load %h1[%i, %k] : memref<359x32xf32>
      %stored = memref.load %w21[%k, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %z1[%i, %c] : memref<359x10xf32>
  }
  mgpu.launch %d2 grid(%c359) block(%c10) stream %s2 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %bias = memref.load %b22[%c] : memref<10xf32>
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %bias) -> (f32) {
      %hv = memref.load %h2[%i, %k] : memref<359x32xf32>
      %stored = memref.load %w22[%k, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %z2[%i, %c] : memref<359x10xf32>
  }
  mgpu.launch %d3 grid(%c359) block(%c10) stream %s3 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %bias = memref.load %b23[%c] : memref<10xf32>
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %bias) -> (f32) {
      %hv = memref.load %h3[%i, %k] : memref<359x32xf32>
      %stored = memref.load %w23[%k, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %z3[%i, %c] : memref<359x10xf32>
  }

  // The gradient of the loss by z: (softmax(z) - onehot(y)) / rows.
  mgpu.launch %d0 grid(%c359) block(%c10) stream %s0 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %first = memref.load %z0[%i, %c0] : memref<359x10xf32>
    %max = scf.for %k = %c1 to %c10 step %c1 iter_args(%acc = %first) -> (f32) {
      %v = memref.load %z0[%i, %k] : memref<359x10xf32>
      %next = arith.maximumf %acc, %v : f32
      scf.yield %next : f32
    }
    %total = scf.for %k = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %z0[%i, %k] : memref<359x10xf32>
      %shifted = arith.subf %v, %max : f32
      %e = math.exp %shifted : f32
      %next = arith.addf %acc, %e : f32
      scf.yield %next : f32
    }
    %own = memref.load %z0[%i, %c] : memref<359x10xf32>
    %ownShifted = arith.subf %own, %max : f32
    %ownExp = math.exp %ownShifted : f32
    %probability = arith.divf %ownExp, %total : f32
    %label = memref.load %y0[%i] : memref<359xi32>
    %class = arith.index_cast %c : index to i32
    %hit = arith.cmpi eq, %label, %class : i32
    %target = arith.select %hit, %one, %zero : f32
    %error = arith.subf %probability, %target : f32
    %scaled = arith.mulf %error, %perRow : f32
    memref.store %scaled, %dz0[%i, %c] : memref<359x10xf32>
  }
  mgpu.launch %d1 grid(%c359) block(%c10) stream %s1 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %first = memref.load %z1[%i, %c0] : memref<359x10xf32>
    %max = scf.for %k = %c1 to %c10 step %c1 iter_args(%acc = %first) -> (f32) {
      %v = memref.load %z1[%i, %k] : memref<359x10xf32>
      %next = arith.maximumf %acc, %v : f32
      scf.yield %next : f32
    }
    %total = scf.for %k = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %z1[%i, %k] : memref<359x10xf32>
      %shifted = arith.subf %v, %max : f32
      %e = math.exp %shifted : f32
      %next = arith.addf %acc, %e : f32
      scf.yield %next : f32
    }
    %own = memref.load %z1[%i, %c] : memref<359x10xf32>
    %ownShifted = arith.subf %own, %max : f32
    %ownExp = math.exp %ownShifted : f32
    %probability = arith.divf %ownExp, %total : f32
    %label = memref.load %y1[%i] : memref<359xi32>
    %class = arith.index_cast %c : index to i32
    %hit = arith.cmpi eq, %label, %class : i32
    %target = arith.select %hit, %one, %zero : f32
    %error = arith.subf %probability, %target : f32
    %scaled = arith.mulf %error, %perRow : f32
    memref.store %scaled, %dz1[%i, %c] : memref<359x10xf32>
  }
  mgpu.launch %d2 grid(%c359) block(%c10) stream %s2 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %first = memref.load %z2[%i, %c0] : memref<359x10xf32>
    %max = scf.for %k = %c1 to %c10 step %c1 iter_args(%acc = %first) -> (f32) {
      %v = memref.load %z2[%i, %k] : memref<359x10xf32>
      %next = arith.maximumf %acc, %v : f32
      scf.yield %next : f32
    }
    %total = scf.for %k = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %z2[%i, %k] : memref<359x10xf32>
      %shifted = arith.subf %v, %max : f32
      %e = math.exp %shifted : f32
      %next = arith.addf %acc, %e : f32
      scf.yield %next : f32
    }
    %own = memref.load %z2[%i, %c] : memref<359x10xf32>
    %ownShifted = arith.subf %own, %max : f32
    %ownExp = math.exp %ownShifted : f32
    %probability = arith.divf %ownExp, %total : f32
    %label = memref.load %y2[%i] : memref<359xi32>
    %class = arith.index_cast %c : index to i32
    %hit = arith.cmpi eq, %label, %class : i32
    %target = arith.select %hit, %one, %zero : f32
    %error = arith.subf %probability, %target : f32
    %scaled = arith.mulf %error, %perRow : f32
    memref.store %scaled, %dz2[%i, %c] : memref<359x10xf32>
  }
  mgpu.launch %d3 grid(%c359) block(%c10) stream %s3 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %first = memref.load %z3[%i, %c0] : memref<359x10xf32>
    %max = scf.for %k = %c1 to %c10 step %c1 iter_args(%acc = %first) -> (f32) {
      %v = memref.load %z3[%i, %k] : memref<359x10xf32>
      %next = arith.maximumf %acc, %v : f32
      scf.yield %next : f32
    }
    %total = scf.for %k = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %z3[%i, %k] : memref<359x10xf32>
      %shifted = arith.subf %v, %max : f32
      %e = math.exp %shifted : f32
      %next = arith.addf %acc, %e : f32
      scf.yield %next : f32
    }
    %own = memref.load %z3[%i, %c] : memref<359x10xf32>
    %ownShifted = arith.subf %own, %max : f32
    %ownExp = math.exp %ownShifted : f32
    %probability = arith.divf %ownExp, %total : f32
    %label = memref.load %y3[%i] : memref<359xi32>
    %class = arith.index_cast %c : index to i32
    %hit = arith.cmpi eq, %label, %class : i32
    %target = arith.select %hit, %one, %zero : f32
    %error = arith.subf %probability, %target : f32
    %scaled = arith.mulf %error, %perRow : f32
    memref.store %scaled, %dz3[%i, %c] : memref<359x10xf32>
  }

  // Backward: each gradient element is one thread, which adds its rows in order.
  mgpu.launch %d0 grid(%c32) block(%c10) stream %s0 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %h0[%i, %k] : memref<359x32xf32>
      %bv = memref.load %dz0[%i, %j] : memref<359x10xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gw20[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d1 grid(%c32) block(%c10) stream %s1 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %h1[%i, %k] : memref<359x32xf32>
      %bv = memref.load %dz1[%i, %j] : memref<359x10xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gw21[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d2 grid(%c32) block(%c10) stream %s2 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %h2[%i, %k] : memref<359x32xf32>
      %bv = memref.load %dz2[%i, %j] : memref<359x10xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gw22[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d3 grid(%c32) block(%c10) stream %s3 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %h3[%i, %k] : memref<359x32xf32>
      %bv = memref.load %dz3[%i, %j] : memref<359x10xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gw23[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c10) stream %s0 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dz0[%i, %j] : memref<359x10xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb20[%j] : memref<10xf32>
  }
  mgpu.launch %d1 grid(%c1) block(%c10) stream %s1 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dz1[%i, %j] : memref<359x10xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb21[%j] : memref<10xf32>
  }
  mgpu.launch %d2 grid(%c1) block(%c10) stream %s2 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dz2[%i, %j] : memref<359x10xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb22[%j] : memref<10xf32>
  }
  mgpu.launch %d3 grid(%c1) block(%c10) stream %s3 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dz3[%i, %j] : memref<359x10xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb23[%j] : memref<10xf32>
  }
  mgpu.launch %d0 grid(%c359) block(%c32) stream %s0 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %c = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %dzv = memref.load %dz0[%i, %c] : memref<359x10xf32>
      %stored = memref.load %w20[%j, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %dzv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %hv = memref.load %h0[%i, %j] : memref<359x32xf32>
    %active = arith.cmpf ogt, %hv, %zero : f32
    %d = arith.select %active, %sum, %zero : f32
    memref.store %d, %dh0[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d1 grid(%c359) block(%c32) stream %s1 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %c = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %dzv = memref.load %dz1[%i, %c] : memref<359x10xf32>
      %stored = memref.load %w21[%j, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %dzv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %hv = memref.load %h1[%i, %j] : memref<359x32xf32>
    %active = arith.cmpf ogt, %hv, %zero : f32
    %d = arith.select %active, %sum, %zero : f32
    memref.store %d, %dh1[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d2 grid(%c359) block(%c32) stream %s2 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %c = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %dzv = memref.load %dz2[%i, %c] : memref<359x10xf32>
      %stored = memref.load %w22[%j, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %dzv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %hv = memref.load %h2[%i, %j] : memref<359x32xf32>
    %active = arith.cmpf ogt, %hv, %zero : f32
    %d = arith.select %active, %sum, %zero : f32
    memref.store %d, %dh2[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d3 grid(%c359) block(%c32) stream %s3 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %c = %c0 to %c10 step %c1 iter_args(%acc = %zero) -> (f32) {
      %dzv = memref.load %dz3[%i, %c] : memref<359x10xf32>
      %stored = memref.load %w23[%j, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %dzv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %hv = memref.load %h3[%i, %j] : memref<359x32xf32>
    %active = arith.cmpf ogt, %hv, %zero : f32
    %d = arith.select %active, %sum, %zero : f32
    memref.store %d, %dh3[%i, %j] : memref<359x32xf32>
  }
  mgpu.launch %d0 grid(%c64) block(%c32) stream %s0 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %x0[%i, %k] : memref<359x64xf32>
      %bv = memref.load %dh0[%i, %j] : memref<359x32xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %scaled = arith.mulf %sum, %sixteenth : f32
    memref.store %scaled, %gw10[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d1 grid(%c64) block(%c32) stream %s1 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %x1[%i, %k] : memref<359x64xf32>
      %bv = memref.load %dh1[%i, %j] : memref<359x32xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %scaled = arith.mulf %sum, %sixteenth : f32
    memref.store %scaled, %gw11[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d2 grid(%c64) block(%c32) stream %s2 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %x2[%i, %k] : memref<359x64xf32>
      %bv = memref.load %dh2[%i, %j] : memref<359x32xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %scaled = arith.mulf %sum, %sixteenth : f32
    memref.store %scaled, %gw12[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d3 grid(%c64) block(%c32) stream %s3 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %x3[%i, %k] : memref<359x64xf32>
      %bv = memref.load %dh3[%i, %j] : memref<359x32xf32>
      %p = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %scaled = arith.mulf %sum, %sixteenth : f32
    memref.store %scaled, %gw13[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c32) stream %s0 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dh0[%i, %j] : memref<359x32xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb10[%j] : memref<32xf32>
  }
  mgpu.launch %d1 grid(%c1) block(%c32) stream %s1 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dh1[%i, %j] : memref<359x32xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb11[%j] : memref<32xf32>
  }
  mgpu.launch %d2 grid(%c1) block(%c32) stream %s2 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dh2[%i, %j] : memref<359x32xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb12[%j] : memref<32xf32>
  }
  mgpu.launch %d3 grid(%c1) block(%c32) stream %s3 {
    %j = gpu.thread_id x
    %sum = scf.for %i = %c0 to %c359 step %c1 iter_args(%acc = %zero) -> (f32) {
      %bv = memref.load %dh3[%i, %j] : memref<359x32xf32>
      %next = arith.addf %acc, %bv : f32
      scf.yield %next : f32
    }
    memref.store %sum, %gb13[%j] : memref<32xf32>
  }

  // Sum over the devices.
  mgpu.all_reduce %gw20, %gw20, %comm, sum stream %s0 : !mgpu.stream
      : memref<32x10xf32>, memref<32x10xf32>, !mgpu.communicator
  mgpu.all_reduce %gw21, %gw21, %comm, sum stream %s1 : !mgpu.stream
      : memref<32x10xf32>, memref<32x10xf32>, !mgpu.communicator
  mgpu.all_reduce %gw22, %gw22, %comm, sum stream %s2 : !mgpu.stream
      : memref<32x10xf32>, memref<32x10xf32>, !mgpu.communicator
  mgpu.all_reduce %gw23, %gw23, %comm, sum stream %s3 : !mgpu.stream
      : memref<32x10xf32>, memref<32x10xf32>, !mgpu.communicator
  mgpu.all_reduce %gb20, %gb20, %comm, sum stream %s0 : !mgpu.stream
      : memref<10xf32>, memref<10xf32>, !mgpu.communicator
  mgpu.all_reduce %gb21, %gb21, %comm, sum stream %s1 : !mgpu.stream
      : memref<10xf32>, memref<10xf32>, !mgpu.communicator
  mgpu.all_reduce %gb22, %gb22, %comm, sum stream %s2 : !mgpu.stream
      : memref<10xf32>, memref<10xf32>, !mgpu.communicator
  mgpu.all_reduce %gb23, %gb23, %comm, sum stream %s3 : !mgpu.stream
      : memref<10xf32>, memref<10xf32>, !mgpu.communicator
  mgpu.all_reduce %gw10, %gw10, %comm, sum stream %s0 : !mgpu.stream
      : memref<64x32xf32>, memref<64x32xf32>, !mgpu.communicator
  mgpu.all_reduce %gw11, %gw11, %comm, sum stream %s1 : !mgpu.stream
      : memref<64x32xf32>, memref<64x32xf32>, !mgpu.communicator
  mgpu.all_reduce %gw12, %gw12, %comm, sum stream %s2 : !mgpu.stream
      : memref<64x32xf32>, memref<64x32xf32>, !mgpu.communicator
  mgpu.all_reduce %gw13, %gw13, %comm, sum stream %s3 : !mgpu.stream
      : memref<64x32xf32>, memref<64x32xf32>, !mgpu.communicator
  mgpu.all_reduce %gb10, %gb10, %comm, sum stream %s0 : !mgpu.stream
      : memref<32xf32>, memref<32xf32>, !mgpu.communicator
  mgpu.all_reduce %gb11, %gb11, %comm, sum stream %s1 : !mgpu.stream
      : memref<32xf32>, memref<32xf32>, !mgpu.communicator
  mgpu.all_reduce %gb12, %gb12, %comm, sum stream %s2 : !mgpu.stream
      : memref<32xf32>, memref<32xf32>, !mgpu.communicator
  mgpu.all_reduce %gb13, %gb13, %comm, sum stream %s3 : !mgpu.stream
      : memref<32xf32>, memref<32xf32>, !mgpu.communicator

  // Update.
  mgpu.launch %d0 grid(%c64) block(%c32) stream %s0 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w10[%k, %j] : memref<64x32xf32>
    %gv = memref.load %gw10[%k, %j] : memref<64x32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w10[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d1 grid(%c64) block(%c32) stream %s1 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w11[%k, %j] : memref<64x32xf32>
    %gv = memref.load %gw11[%k, %j] : memref<64x32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w11[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d2 grid(%c64) block(%c32) stream %s2 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w12[%k, %j] : memref<64x32xf32>
    %gv = memref.load %gw12[%k, %j] : memref<64x32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w12[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d3 grid(%c64) block(%c32) stream %s3 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w13[%k, %j] : memref<64x32xf32>
    %gv = memref.load %gw13[%k, %j] : memref<64x32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w13[%k, %j] : memref<64x32xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c32) stream %s0 {
    %j = gpu.thread_id x
    %old = memref.load %b10[%j] : memref<32xf32>
    %gv = memref.load %gb10[%j] : memref<32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b10[%j] : memref<32xf32>
  }
  mgpu.launch %d1 grid(%c1) block(%c32) stream %s1 {
    %j = gpu.thread_id x
    %old = memref.load %b11[%j] : memref<32xf32>
    %gv = memref.load %gb11[%j] : memref<32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b11[%j] : memref<32xf32>
  }
  mgpu.launch %d2 grid(%c1) block(%c32) stream %s2 {
    %j = gpu.thread_id x
    %old = memref.load %b12[%j] : memref<32xf32>
    %gv = memref.load %gb12[%j] : memref<32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b12[%j] : memref<32xf32>
  }
  mgpu.launch %d3 grid(%c1) block(%c32) stream %s3 {
    %j = gpu.thread_id x
    %old = memref.load %b13[%j] : memref<32xf32>
    %gv = memref.load %gb13[%j] : memref<32xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b13[%j] : memref<32xf32>
  }
  mgpu.launch %d0 grid(%c32) block(%c10) stream %s0 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w20[%k, %j] : memref<32x10xf32>
    %gv = memref.load %gw20[%k, %j] : memref<32x10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w20[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d1 grid(%c32) block(%c10) stream %s1 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w21[%k, %j] : memref<32x10xf32>
    %gv = memref.load %gw21[%k, %j] : memref<32x10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w21[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d2 grid(%c32) block(%c10) stream %s2 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w22[%k, %j] : memref<32x10xf32>
    %gv = memref.load %gw22[%k, %j] : memref<32x10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w22[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d3 grid(%c32) block(%c10) stream %s3 {
    %k = gpu.block_id x
    %j = gpu.thread_id x
    %old = memref.load %w23[%k, %j] : memref<32x10xf32>
    %gv = memref.load %gw23[%k, %j] : memref<32x10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %w23[%k, %j] : memref<32x10xf32>
  }
  mgpu.launch %d0 grid(%c1) block(%c10) stream %s0 {
    %j = gpu.thread_id x
    %old = memref.load %b20[%j] : memref<10xf32>
    %gv = memref.load %gb20[%j] : memref<10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b20[%j] : memref<10xf32>
  }
  mgpu.launch %d1 grid(%c1) block(%c10) stream %s1 {
    %j = gpu.thread_id x
    %old = memref.load %b21[%j] : memref<10xf32>
    %gv = memref.load %gb21[%j] : memref<10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b21[%j] : memref<10xf32>
  }
  mgpu.launch %d2 grid(%c1) block(%c10) stream %s2 {
    %j = gpu.thread_id x
    %old = memref.load %b22[%j] : memref<10xf32>
    %gv = memref.load %gb22[%j] : memref<10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b22[%j] : memref<10xf32>
  }
  mgpu.launch %d3 grid(%c1) block(%c10) stream %s3 {
    %j = gpu.thread_id x
    %old = memref.load %b23[%j] : memref<10xf32>
    %gv = memref.load %gb23[%j] : memref<10xf32>
    %delta = arith.mulf %gv, %rate : f32
    %new = arith.subf %old, %delta : f32
    memref.store %new, %b23[%j] : memref<10xf32>
  }

  mgpu.memcpy %w1, %w10, %host, %d0 stream %s0 : !mgpu.stream
      : memref<64x32xf32>, memref<64x32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b1, %b10, %host, %d0 stream %s0 : !mgpu.stream
      : memref<32xf32>, memref<32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %w2, %w20, %host, %d0 stream %s0 : !mgpu.stream
      : memref<32x10xf32>, memref<32x10xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b2, %b20, %host, %d0 stream %s0 : !mgpu.stream
      : memref<10xf32>, memref<10xf32>, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.sync_stream %s2 : !mgpu.stream
  mgpu.sync_stream %s3 : !mgpu.stream
  mgpu.free %x0, %d0 : memref<359x64xf32>, !mgpu.device
  mgpu.free %x1, %d1 : memref<359x64xf32>, !mgpu.device
  mgpu.free %x2, %d2 : memref<359x64xf32>, !mgpu.device
  mgpu.free %x3, %d3 : memref<359x64xf32>, !mgpu.device
  mgpu.free %y0, %d0 : memref<359xi32>, !mgpu.device
  mgpu.free %y1, %d1 : memref<359xi32>, !mgpu.device
  mgpu.free %y2, %d2 : memref<359xi32>, !mgpu.device
  mgpu.free %y3, %d3 : memref<359xi32>, !mgpu.device
  mgpu.free %w10, %d0 : memref<64x32xf32>, !mgpu.device
  mgpu.free %w11, %d1 : memref<64x32xf32>, !mgpu.device
  mgpu.free %w12, %d2 : memref<64x32xf32>, !mgpu.device
  mgpu.free %w13, %d3 : memref<64x32xf32>, !mgpu.device
  mgpu.free %gw10, %d0 : memref<64x32xf32>, !mgpu.device
  mgpu.free %gw11, %d1 : memref<64x32xf32>, !mgpu.device
  mgpu.free %gw12, %d2 : memref<64x32xf32>, !mgpu.device
  mgpu.free %gw13, %d3 : memref<64x32xf32>, !mgpu.device
  mgpu.free %b10, %d0 : memref<32xf32>, !mgpu.device
  mgpu.free %b11, %d1 : memref<32xf32>, !mgpu.device
  mgpu.free %b12, %d2 : memref<32xf32>, !mgpu.device
  mgpu.free %b13, %d3 : memref<32xf32>, !mgpu.device
  mgpu.free %gb10, %d0 : memref<32xf32>, !mgpu.device
  mgpu.free %gb11, %d1 : memref<32xf32>, !mgpu.device
  mgpu.free %gb12, %d2 : memref<32xf32>, !mgpu.device
  mgpu.free %gb13, %d3 : memref<32xf32>, !mgpu.device
  mgpu.free %w20, %d0 : memref<32x10xf32>, !mgpu.device
  mgpu.free %w21, %d1 : memref<32x10xf32>, !mgpu.device
  mgpu.free %w22, %d2 : memref<32x10xf32>, !mgpu.device
  mgpu.free %w23, %d3 : memref<32x10xf32>, !mgpu.device
  mgpu.free %gw20, %d0 : memref<32x10xf32>, !mgpu.device
  mgpu.free %gw21, %d1 : memref<32x10xf32>, !mgpu.device
  mgpu.free %gw22, %d2 : memref<32x10xf32>, !mgpu.device
  mgpu.free %gw23, %d3 : memref<32x10xf32>, !mgpu.device
  mgpu.free %b20, %d0 : memref<10xf32>, !mgpu.device
  mgpu.free %b21, %d1 : memref<10xf32>, !mgpu.device
  mgpu.free %b22, %d2 : memref<10xf32>, !mgpu.device
  mgpu.free %b23, %d3 : memref<10xf32>, !mgpu.device
  mgpu.free %gb20, %d0 : memref<10xf32>, !mgpu.device
  mgpu.free %gb21, %d1 : memref<10xf32>, !mgpu.device
  mgpu.free %gb22, %d2 : memref<10xf32>, !mgpu.device
  mgpu.free %gb23, %d3 : memref<10xf32>, !mgpu.device
  mgpu.free %h0, %d0 : memref<359x32xf32>, !mgpu.device
  mgpu.free %h1, %d1 : memref<359x32xf32>, !mgpu.device
  mgpu.free %h2, %d2 : memref<359x32xf32>, !mgpu.device
  mgpu.free %h3, %d3 : memref<359x32xf32>, !mgpu.device
  mgpu.free %z0, %d0 : memref<359x10xf32>, !mgpu.device
  mgpu.free %z1, %d1 : memref<359x10xf32>, !mgpu.device
  mgpu.free %z2, %d2 : memref<359x10xf32>, !mgpu.device
  mgpu.free %z3, %d3 : memref<359x10xf32>, !mgpu.device
  mgpu.free %dz0, %d0 : memref<359x10xf32>, !mgpu.device
  mgpu.free %dz1, %d1 : memref<359x10xf32>, !mgpu.device
  mgpu.free %dz2, %d2 : memref<359x10xf32>, !mgpu.device
  mgpu.free %dz3, %d3 : memref<359x10xf32>, !mgpu.device
  mgpu.free %dh0, %d0 : memref<359x32xf32>, !mgpu.device
  mgpu.free %dh1, %d1 : memref<359x32xf32>, !mgpu.device
  mgpu.free %dh2, %d2 : memref<359x32xf32>, !mgpu.device
  mgpu.free %dh3, %d3 : memref<359x32xf32>, !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  mgpu.destroy_stream %s2 : !mgpu.stream
  mgpu.destroy_stream %s3 : !mgpu.stream
  return
}

// The predicted class of each held-back row, and how many are right. One device.
func.func @eval(%x: memref<361x64xf32>, %y: memref<361xi32>, %w1: memref<64x32xf32>, %b1: memref<32xf32>,
                %w2: memref<32x10xf32>, %b2: memref<10xf32>,
                %predicted: memref<361xi32> {mgpu.role = "output"},
                %correct: memref<1xi32> {mgpu.role = "output"}) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c361 = arith.constant 361 : index
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  %sixteenth = arith.constant 0.0625 : f32
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %s0 = mgpu.create_stream %d0 : !mgpu.device -> !mgpu.stream

  %x0 = mgpu.alloc %d0 : !mgpu.device -> memref<361x64xf32>
  %y0 = mgpu.alloc %d0 : !mgpu.device -> memref<361xi32>
  %w10 = mgpu.alloc %d0 : !mgpu.device -> memref<64x32xf32>
  %b10 = mgpu.alloc %d0 : !mgpu.device -> memref<32xf32>
  %w20 = mgpu.alloc %d0 : !mgpu.device -> memref<32x10xf32>
  %b20 = mgpu.alloc %d0 : !mgpu.device -> memref<10xf32>
  %h0 = mgpu.alloc %d0 : !mgpu.device -> memref<361x32xf32>
  %z0 = mgpu.alloc %d0 : !mgpu.device -> memref<361x10xf32>
  %predicted0 = mgpu.alloc %d0 : !mgpu.device -> memref<361xi32>
  %correct0 = mgpu.alloc %d0 : !mgpu.device -> memref<1xi32>
  mgpu.memcpy %x0, %x, %d0, %host stream %s0 : !mgpu.stream
      : memref<361x64xf32>, memref<361x64xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %y0, %y, %d0, %host stream %s0 : !mgpu.stream
      : memref<361xi32>, memref<361xi32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %w10, %w1, %d0, %host stream %s0 : !mgpu.stream
      : memref<64x32xf32>, memref<64x32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b10, %b1, %d0, %host stream %s0 : !mgpu.stream
      : memref<32xf32>, memref<32xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %w20, %w2, %d0, %host stream %s0 : !mgpu.stream
      : memref<32x10xf32>, memref<32x10xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %b20, %b2, %d0, %host stream %s0 : !mgpu.stream
      : memref<10xf32>, memref<10xf32>, !mgpu.device, !mgpu.device

  mgpu.launch %d0 grid(%c361) block(%c32) stream %s0 {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %bias = memref.load %b10[%j] : memref<32xf32>
    %sum = scf.for %k = %c0 to %c64 step %c1 iter_args(%acc = %bias) -> (f32) {
      %pixel = memref.load %x0[%i, %k] : memref<361x64xf32>
      %xv = arith.mulf %pixel, %sixteenth : f32
      %stored = memref.load %w10[%k, %j] : memref<64x32xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %xv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    %relu = arith.maximumf %sum, %zero : f32
    memref.store %relu, %h0[%i, %j] : memref<361x32xf32>
  }
  mgpu.launch %d0 grid(%c361) block(%c10) stream %s0 {
    %i = gpu.block_id x
    %c = gpu.thread_id x
    %bias = memref.load %b20[%c] : memref<10xf32>
    %sum = scf.for %k = %c0 to %c32 step %c1 iter_args(%acc = %bias) -> (f32) {
      %hv = memref.load %h0[%i, %k] : memref<361x32xf32>
      %stored = memref.load %w20[%k, %c] : memref<32x10xf32>
      %wv = arith.subf %stored, %half : f32
      %p = arith.mulf %hv, %wv : f32
      %next = arith.addf %acc, %p : f32
      scf.yield %next : f32
    }
    memref.store %sum, %z0[%i, %c] : memref<361x10xf32>
  }
  mgpu.launch %d0 grid(%c361) block(%c1) stream %s0 {
    %i = gpu.block_id x
    %first = memref.load %z0[%i, %c0] : memref<361x10xf32>
    %best:2 = scf.for %c = %c1 to %c10 step %c1
        iter_args(%max = %first, %class = %none) -> (f32, i32) {
      %v = memref.load %z0[%i, %c] : memref<361x10xf32>
      %better = arith.cmpf ogt, %v, %max : f32
      %this = arith.index_cast %c : index to i32
      %nextMax = arith.select %better, %v, %max : f32
      %nextClass = arith.select %better, %this, %class : i32
      scf.yield %nextMax, %nextClass : f32, i32
    }
    memref.store %best#1, %predicted0[%i] : memref<361xi32>
  }
  mgpu.launch %d0 grid(%c1) block(%c1) stream %s0 {
    %count = scf.for %i = %c0 to %c361 step %c1 iter_args(%acc = %none) -> (i32) {
      %p = memref.load %predicted0[%i] : memref<361xi32>
      %label = memref.load %y0[%i] : memref<361xi32>
      %right = arith.cmpi eq, %p, %label : i32
      %add = arith.select %right, %one, %none : i32
      %next = arith.addi %acc, %add : i32
      scf.yield %next : i32
    }
    memref.store %count, %correct0[%c0] : memref<1xi32>
  }

  mgpu.memcpy %predicted, %predicted0, %host, %d0 stream %s0 : !mgpu.stream
      : memref<361xi32>, memref<361xi32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %correct, %correct0, %host, %d0 stream %s0 : !mgpu.stream
      : memref<1xi32>, memref<1xi32>, !mgpu.device, !mgpu.device
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.free %x0, %d0 : memref<361x64xf32>, !mgpu.device
  mgpu.free %y0, %d0 : memref<361xi32>, !mgpu.device
  mgpu.free %w10, %d0 : memref<64x32xf32>, !mgpu.device
  mgpu.free %b10, %d0 : memref<32xf32>, !mgpu.device
  mgpu.free %w20, %d0 : memref<32x10xf32>, !mgpu.device
  mgpu.free %b20, %d0 : memref<10xf32>, !mgpu.device
  mgpu.free %h0, %d0 : memref<361x32xf32>, !mgpu.device
  mgpu.free %z0, %d0 : memref<361x10xf32>, !mgpu.device
  mgpu.free %predicted0, %d0 : memref<361xi32>, !mgpu.device
  mgpu.free %correct0, %d0 : memref<1xi32>, !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  return
}
