// RUN: mgpu-tune kernels %s | FileCheck %s
// RUN: mgpu-tune kernels %s --emit %t.texts
// RUN: FileCheck %s --check-prefix=TEXT < %t.texts/main_kernel0.cu

// Names of the source that the text has for something else: its own functions,
// what it calls its tiles, a device function, and functions that are one
// identifier in C++.
// CHECK: main_kernel0 {{.*}}
// CHECK: a_b_kernel0_{{[0-9a-f]+}} {{.*}}
// CHECK: a_b_kernel0 {{.*}}
// TEXT: const float maximum_1 = maximum(
// TEXT: tile_x

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func private @twice(%v: f32) -> f32 {
  %two = arith.constant 2.0 : f32
  %r = arith.mulf %v, %two : f32
  return %r : f32
}

func.func private @a.b(%dev: !mgpu.device, %x: memref<256xf32>) {
  %g = arith.constant 8 : index
  %b = arith.constant 32 : index
  mgpu.launch %dev grid(%g) block(%b) {
    %i = gpu.global_id x
    %v = memref.load %x[%i] : memref<256xf32>
    %w = arith.addf %v, %v : f32
    memref.store %w, %x[%i] : memref<256xf32>
  }
  return
}

func.func private @a_b(%dev: !mgpu.device, %x: memref<256xf32>) {
  %g = arith.constant 8 : index
  %b = arith.constant 32 : index
  mgpu.launch %dev grid(%g) block(%b) {
    %i = gpu.global_id x
    %v = memref.load %x[%i] : memref<256xf32>
    %w = arith.mulf %v, %v : f32
    memref.store %w, %x[%i] : memref<256xf32>
  }
  return
}

func.func @main(%h: memref<256xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %g = arith.constant 8 : index
  %b = arith.constant 32 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %dev = mgpu.get_device %c0 : !mgpu.device
  %x = mgpu.alloc %dev : !mgpu.device -> memref<256xf32>
  %y = mgpu.alloc %dev : !mgpu.device -> memref<256xf32>
  mgpu.memcpy %x, %h, %dev, %host : memref<256xf32>, memref<256xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %dev grid(%g) block(%b) {
    %wrapAdd = gpu.global_id x
    %c1 = arith.constant 1 : index
    %c254 = arith.constant 254 : index
    %in = arith.cmpi ult, %wrapAdd, %c254 : index
    scf.if %in {
      %loadParts = arith.addi %wrapAdd, %c1 : index
      %floorDiv = arith.addi %loadParts, %c1 : index
      %mathDivide = memref.load %x[%wrapAdd] : memref<256xf32>
      %tile_x = memref.load %x[%loadParts] : memref<256xf32>
      %storeParts = memref.load %x[%floorDiv] : memref<256xf32>
      %maximum = arith.maximumf %mathDivide, %tile_x : f32
      %main_kernel0_twice = arith.maximumf %maximum, %storeParts : f32
      %minimum = func.call @twice(%main_kernel0_twice) : (f32) -> f32
      %blockReduce = arith.divf %minimum, %maximum : f32
      memref.store %blockReduce, %y[%wrapAdd] : memref<256xf32>
    }
  }
  func.call @a.b(%dev, %y) : (!mgpu.device, memref<256xf32>) -> ()
  func.call @a_b(%dev, %y) : (!mgpu.device, memref<256xf32>) -> ()
  mgpu.memcpy %h, %y, %host, %dev : memref<256xf32>, memref<256xf32>, !mgpu.device, !mgpu.device
  return
}
