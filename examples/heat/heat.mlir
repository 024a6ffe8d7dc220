// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Twenty steps of the Jacobi iteration for the heat equation on a 64 x 64 plate whose
// rim keeps its temperature. Each device owns 16 rows and one halo row above and
// below them. Even pairs of neighbours exchange first, odd pairs second; in a pair
// the upper device sends before it receives and the lower one receives first, so
// no two of them wait for each other.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

func.func @main(%field: memref<64x64xf32>) {
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
  %c16 = arith.constant 16 : index
  %c63 = arith.constant 63 : index
  %c64 = arith.constant 64 : index
  %quarter = arith.constant 0.25 : f32
  %row0 = arith.constant 0 : index
  %row1 = arith.constant 16 : index
  %row2 = arith.constant 32 : index
  %row3 = arith.constant 48 : index

  %u0 = mgpu.alloc %d0 : !mgpu.device -> memref<18x64xf32>
  %u1 = mgpu.alloc %d1 : !mgpu.device -> memref<18x64xf32>
  %u2 = mgpu.alloc %d2 : !mgpu.device -> memref<18x64xf32>
  %u3 = mgpu.alloc %d3 : !mgpu.device -> memref<18x64xf32>
  %v0 = mgpu.alloc %d0 : !mgpu.device -> memref<18x64xf32>
  %v1 = mgpu.alloc %d1 : !mgpu.device -> memref<18x64xf32>
  %v2 = mgpu.alloc %d2 : !mgpu.device -> memref<18x64xf32>
  %v3 = mgpu.alloc %d3 : !mgpu.device -> memref<18x64xf32>
  %in0 = memref.subview %u0[1, 0] [16, 64] [1, 1] : memref<18x64xf32> to memref<16x64xf32, strided<[64, 1], offset: 64>>
  %in1 = memref.subview %u1[1, 0] [16, 64] [1, 1] : memref<18x64xf32> to memref<16x64xf32, strided<[64, 1], offset: 64>>
  %in2 = memref.subview %u2[1, 0] [16, 64] [1, 1] : memref<18x64xf32> to memref<16x64xf32, strided<[64, 1], offset: 64>>
  %in3 = memref.subview %u3[1, 0] [16, 64] [1, 1] : memref<18x64xf32> to memref<16x64xf32, strided<[64, 1], offset: 64>>
  %u0Bottom = memref.subview %u0[16, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1024>>
  %u0Below = memref.subview %u0[17, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1088>>
  %u1Above = memref.subview %u1[0, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1]>>
  %u1Top = memref.subview %u1[1, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 64>>
  %u1Bottom = memref.subview %u1[16, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1024>>
  %u1Below = memref.subview %u1[17, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1088>>
  %u2Above = memref.subview %u2[0, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1]>>
  %u2Top = memref.subview %u2[1, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 64>>
  %u2Bottom = memref.subview %u2[16, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1024>>
  %u2Below = memref.subview %u2[17, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1088>>
  %u3Above = memref.subview %u3[0, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1]>>
  %u3Top = memref.subview %u3[1, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 64>>
  %v0Bottom = memref.subview %v0[16, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1024>>
  %v0Below = memref.subview %v0[17, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1088>>
  %v1Above = memref.subview %v1[0, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1]>>
  %v1Top = memref.subview %v1[1, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 64>>
  %v1Bottom = memref.subview %v1[16, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1024>>
  %v1Below = memref.subview %v1[17, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1088>>
  %v2Above = memref.subview %v2[0, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1]>>
  %v2Top = memref.subview %v2[1, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 64>>
  %v2Bottom = memref.subview %v2[16, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1024>>
  %v2Below = memref.subview %v2[17, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 1088>>
  %v3Above = memref.subview %v3[0, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1]>>
  %v3Top = memref.subview %v3[1, 0] [1, 64] [1, 1] : memref<18x64xf32> to memref<1x64xf32, strided<[64, 1], offset: 64>>
  mgpu.scatter %field, %host, [%in0, %in1, %in2, %in3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<64x64xf32>, !mgpu.device, [memref<16x64xf32, strided<[64, 1], offset: 64>>, memref<16x64xf32, strided<[64, 1], offset: 64>>, memref<16x64xf32, strided<[64, 1], offset: 64>>, memref<16x64xf32, strided<[64, 1], offset: 64>>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]

  scf.for %step = %c0 to %c10 step %c1 {
    mgpu.send %u0Bottom, %comm, %c1 stream %s0 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1024>>, !mgpu.communicator
    mgpu.recv %u0Below, %comm, %c1 stream %s0 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1088>>, !mgpu.communicator
    mgpu.recv %u1Above, %comm, %c0 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1]>>, !mgpu.communicator
    mgpu.send %u1Top, %comm, %c0 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 64>>, !mgpu.communicator
    mgpu.send %u2Bottom, %comm, %c3 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1024>>, !mgpu.communicator
    mgpu.recv %u2Below, %comm, %c3 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1088>>, !mgpu.communicator
    mgpu.recv %u3Above, %comm, %c2 stream %s3 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1]>>, !mgpu.communicator
    mgpu.send %u3Top, %comm, %c2 stream %s3 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 64>>, !mgpu.communicator
    mgpu.send %u1Bottom, %comm, %c2 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1024>>, !mgpu.communicator
    mgpu.recv %u1Below, %comm, %c2 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1088>>, !mgpu.communicator
    mgpu.recv %u2Above, %comm, %c1 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1]>>, !mgpu.communicator
    mgpu.send %u2Top, %comm, %c1 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 64>>, !mgpu.communicator
    mgpu.launch %d0 grid(%c16) block(%c64) stream %s0 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row0 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %u0[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %u0[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %u0[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %u0[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %v0[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %u0[%i, %j] : memref<18x64xf32>
        memref.store %edge, %v0[%i, %j] : memref<18x64xf32>
      }
    }
    mgpu.launch %d1 grid(%c16) block(%c64) stream %s1 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row1 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %u1[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %u1[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %u1[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %u1[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %v1[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %u1[%i, %j] : memref<18x64xf32>
        memref.store %edge, %v1[%i, %j] : memref<18x64xf32>
      }
    }
    mgpu.launch %d2 grid(%c16) block(%c64) stream %s2 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row2 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %u2[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %u2[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %u2[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %u2[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %v2[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %u2[%i, %j] : memref<18x64xf32>
        memref.store %edge, %v2[%i, %j] : memref<18x64xf32>
      }
    }
    mgpu.launch %d3 grid(%c16) block(%c64) stream %s3 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row3 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %u3[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %u3[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %u3[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %u3[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %v3[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %u3[%i, %j] : memref<18x64xf32>
        memref.store %edge, %v3[%i, %j] : memref<18x64xf32>
      }
    }
    mgpu.send %v0Bottom, %comm, %c1 stream %s0 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1024>>, !mgpu.communicator
    mgpu.recv %v0Below, %comm, %c1 stream %s0 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1088>>, !mgpu.communicator
    mgpu.recv %v1Above, %comm, %c0 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1]>>, !mgpu.communicator
    mgpu.send %v1Top, %comm, %c0 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 64>>, !mgpu.communicator
    mgpu.send %v2Bottom, %comm, %c3 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1024>>, !mgpu.communicator
    mgpu.recv %v2Below, %comm, %c3 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1088>>, !mgpu.communicator
    mgpu.recv %v3Above, %comm, %c2 stream %s3 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1]>>, !mgpu.communicator
    mgpu.send %v3Top, %comm, %c2 stream %s3 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 64>>, !mgpu.communicator
    mgpu.send %v1Bottom, %comm, %c2 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1024>>, !mgpu.communicator
    mgpu.recv %v1Below, %comm, %c2 stream %s1 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 1088>>, !mgpu.communicator
    mgpu.recv %v2Above, %comm, %c1 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1]>>, !mgpu.communicator
    mgpu.send %v2Top, %comm, %c1 stream %s2 : !mgpu.stream
        : memref<1x64xf32, strided<[64, 1], offset: 64>>, !mgpu.communicator
    mgpu.launch %d0 grid(%c16) block(%c64) stream %s0 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row0 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %v0[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %v0[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %v0[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %v0[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %u0[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %v0[%i, %j] : memref<18x64xf32>
        memref.store %edge, %u0[%i, %j] : memref<18x64xf32>
      }
    }
    mgpu.launch %d1 grid(%c16) block(%c64) stream %s1 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row1 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %v1[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %v1[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %v1[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %v1[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %u1[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %v1[%i, %j] : memref<18x64xf32>
        memref.store %edge, %u1[%i, %j] : memref<18x64xf32>
      }
    }
    mgpu.launch %d2 grid(%c16) block(%c64) stream %s2 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row2 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %v2[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %v2[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %v2[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %v2[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %u2[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %v2[%i, %j] : memref<18x64xf32>
        memref.store %edge, %u2[%i, %j] : memref<18x64xf32>
      }
    }
    mgpu.launch %d3 grid(%c16) block(%c64) stream %s3 {
      %block = gpu.block_id x
      %j = gpu.thread_id x
      %i = arith.addi %block, %c1 : index
      %row = arith.addi %block, %row3 : index
      %up = arith.cmpi sgt, %row, %c0 : index
      %down = arith.cmpi slt, %row, %c63 : index
      %left = arith.cmpi sgt, %j, %c0 : index
      %right = arith.cmpi slt, %j, %c63 : index
      %vertical = arith.andi %up, %down : i1
      %horizontal = arith.andi %left, %right : i1
      %inside = arith.andi %vertical, %horizontal : i1
      scf.if %inside {
        %iUp = arith.subi %i, %c1 : index
        %iDown = arith.addi %i, %c1 : index
        %jLeft = arith.subi %j, %c1 : index
        %jRight = arith.addi %j, %c1 : index
        %n = memref.load %v3[%iUp, %j] : memref<18x64xf32>
        %s = memref.load %v3[%iDown, %j] : memref<18x64xf32>
        %w = memref.load %v3[%i, %jLeft] : memref<18x64xf32>
        %e = memref.load %v3[%i, %jRight] : memref<18x64xf32>
        %ns = arith.addf %n, %s : f32
        %we = arith.addf %w, %e : f32
        %sum = arith.addf %ns, %we : f32
        %mean = arith.mulf %sum, %quarter : f32
        memref.store %mean, %u3[%i, %j] : memref<18x64xf32>
      } else {
        %edge = memref.load %v3[%i, %j] : memref<18x64xf32>
        memref.store %edge, %u3[%i, %j] : memref<18x64xf32>
      }
    }
  }

  mgpu.gather %field, %host, [%in0, %in1, %in2, %in3], [%d0, %d1, %d2, %d3] streams [%s0, %s1, %s2, %s3] : !mgpu.stream, !mgpu.stream, !mgpu.stream, !mgpu.stream axis = 0
      : memref<64x64xf32>, !mgpu.device, [memref<16x64xf32, strided<[64, 1], offset: 64>>, memref<16x64xf32, strided<[64, 1], offset: 64>>, memref<16x64xf32, strided<[64, 1], offset: 64>>, memref<16x64xf32, strided<[64, 1], offset: 64>>], [!mgpu.device, !mgpu.device, !mgpu.device, !mgpu.device]
  mgpu.sync_stream %s0 : !mgpu.stream
  mgpu.sync_stream %s1 : !mgpu.stream
  mgpu.sync_stream %s2 : !mgpu.stream
  mgpu.sync_stream %s3 : !mgpu.stream
  mgpu.free %u0, %d0 : memref<18x64xf32>, !mgpu.device
  mgpu.free %u1, %d1 : memref<18x64xf32>, !mgpu.device
  mgpu.free %u2, %d2 : memref<18x64xf32>, !mgpu.device
  mgpu.free %u3, %d3 : memref<18x64xf32>, !mgpu.device
  mgpu.free %v0, %d0 : memref<18x64xf32>, !mgpu.device
  mgpu.free %v1, %d1 : memref<18x64xf32>, !mgpu.device
  mgpu.free %v2, %d2 : memref<18x64xf32>, !mgpu.device
  mgpu.free %v3, %d3 : memref<18x64xf32>, !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  mgpu.destroy_stream %s2 : !mgpu.stream
  mgpu.destroy_stream %s3 : !mgpu.stream
  return
}
