// Sums of nothing are what was there before, on the host and in the text for
// GPUs alike.
// RUN: mgpu-tune run %s --arg h=iota --out h=%t.npy
// RUN: %python -c "import sys,struct; print(*map(int,struct.unpack('<5f',open(sys.argv[1],'rb').read()[-20:])))" %t.npy | FileCheck %s
// RUN: mgpu-tune kernels %s | FileCheck %s --check-prefix=TEXT

// CHECK: 0 1 2 3 4
// TEXT: reduce_kernel0
// TEXT: matmul_kernel0

mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%h: memref<5xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %dev = mgpu.get_device %c0 : !mgpu.device
  %y = mgpu.alloc %dev : !mgpu.device -> memref<5xf32>
  %m = mgpu.alloc %dev : !mgpu.device -> memref<5x1xf32>
  %a = mgpu.alloc %dev : !mgpu.device -> memref<5x0xf32>
  %b = mgpu.alloc %dev : !mgpu.device -> memref<0x1xf32>
  %c = mgpu.alloc %dev : !mgpu.device -> memref<5x0xf32>
  mgpu.memcpy %y, %h, %dev, %host : memref<5xf32>, memref<5xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %a, %c, %dev, %dev : memref<5x0xf32>, memref<5x0xf32>, !mgpu.device, !mgpu.device
  linalg.reduce { arith.addf } ins(%a : memref<5x0xf32>) outs(%y : memref<5xf32>) dimensions = [1]
  linalg.matmul ins(%a, %b : memref<5x0xf32>, memref<0x1xf32>) outs(%m : memref<5x1xf32>)
  mgpu.memcpy %h, %y, %host, %dev : memref<5xf32>, memref<5xf32>, !mgpu.device, !mgpu.device
  return
}
