// RUN: mgpu-tune run %s --target host:1 --arg x=iota --out y=%t.npy | FileCheck %s --check-prefix=PHASES
// RUN: %python -c "import sys,struct; b=open(sys.argv[1],'rb').read()[-256:]; print(*map(int,struct.unpack('<64f',b)))" %t.npy | FileCheck %s

// Each block reverses its 32 elements through dynamic shared memory.
// PHASES: load
// PHASES: replay
// PHASES: fetch
// CHECK: 31 30 29 {{.*}} 1 0 63 62 {{.*}} 33 32

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%x: memref<64xf32>, %y: memref<64xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %bytes = arith.constant 128 : i32
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  %b = mgpu.alloc %d : !mgpu.device -> memref<64xf32>
  mgpu.memcpy %a, %x, %d, %host : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d grid(%c2) block(%c32) dynamic_shared_memory_size %bytes {
    %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %zero = arith.constant 0 : index
    %tile = memref.view %shared[%zero][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<32xf32, #gpu.address_space<workgroup>>
    %t = gpu.thread_id x
    %i = gpu.global_id x
    %v = memref.load %a[%i] : memref<64xf32>
    memref.store %v, %tile[%t] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %last = arith.constant 31 : index
    %r = arith.subi %last, %t : index
    %w = memref.load %tile[%r] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %w, %b[%i] : memref<64xf32>
  }
  mgpu.memcpy %y, %b, %host, %d : memref<64xf32>, memref<64xf32>, !mgpu.device, !mgpu.device
  return
}
