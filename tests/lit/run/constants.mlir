// RUN: mgpu-tune run %s --arg x=iota --repeat 3 --target host:1 --out x=%t.npy
// RUN: %python -c "import sys,struct; b=open(sys.argv[1],'rb').read()[-16:]; print(*map(int,struct.unpack('<4f',b)))" %t.npy | FileCheck %s --check-prefix=OUT

// Each replay adds two constants to x. Nothing else writes %once, which is uploaded at load; a kernel
// adds to %again, which each replay uploads again.
// OUT: 33 67 101 135

mgpu.device_config @config #mgpu.device_config<numDevices = 1>
memref.global constant @once : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
memref.global constant @again : memref<4xf32> = dense<[10.0, 20.0, 30.0, 40.0]>

func.func @main(%x: memref<4xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %k1 = memref.get_global @once : memref<4xf32>
  %k2 = memref.get_global @again : memref<4xf32>
  %once = mgpu.alloc %d0 : !mgpu.device -> memref<4xf32>
  %again = mgpu.alloc %d0 : !mgpu.device -> memref<4xf32>
  %a = mgpu.alloc %d0 : !mgpu.device -> memref<4xf32>
  mgpu.memcpy %once, %k1, %d0, %host : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %again, %k2, %d0, %host : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %a, %x, %d0, %host : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  mgpu.launch %d0 grid(%c1) block(%c4) {
    %i = gpu.thread_id x
    %u = memref.load %a[%i] : memref<4xf32>
    %v = memref.load %once[%i] : memref<4xf32>
    %w = memref.load %again[%i] : memref<4xf32>
    %vw = arith.addf %v, %w : f32
    memref.store %vw, %again[%i] : memref<4xf32>
    %sum = arith.addf %u, %vw : f32
    memref.store %sum, %a[%i] : memref<4xf32>
  }
  mgpu.memcpy %x, %a, %host, %d0 : memref<4xf32>, memref<4xf32>, !mgpu.device, !mgpu.device
  return
}
