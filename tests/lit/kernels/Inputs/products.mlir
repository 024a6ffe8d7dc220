// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// c = a * b, of f16 with sums of f32; batches of bf16 whose A is a view of every
// other column; and a product of f32.
mgpu.device_config @config #mgpu.device_config<numDevices = 1>

func.func @main(%a: memref<200x96xf16>, %b: memref<96x160xf16>, %c: memref<200x160xf32>,
                %x: memref<2x40x64xbf16>, %y: memref<2x32x24xbf16>, %z: memref<2x40x24xbf16>,
                %p: memref<40x40xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d = mgpu.get_device %c0 : !mgpu.device
  %da = mgpu.alloc %d : !mgpu.device -> memref<200x96xf16>
  %db = mgpu.alloc %d : !mgpu.device -> memref<96x160xf16>
  %dc = mgpu.alloc %d : !mgpu.device -> memref<200x160xf32>
  %dx = mgpu.alloc %d : !mgpu.device -> memref<2x40x64xbf16>
  %dy = mgpu.alloc %d : !mgpu.device -> memref<2x32x24xbf16>
  %dz = mgpu.alloc %d : !mgpu.device -> memref<2x40x24xbf16>
  %dp = mgpu.alloc %d : !mgpu.device -> memref<40x40xf32>
  %dq = mgpu.alloc %d : !mgpu.device -> memref<40x40xf32>
  %dr = mgpu.alloc %d : !mgpu.device -> memref<40x40xf32>
  mgpu.memcpy %da, %a, %d, %host : memref<200x96xf16>, memref<200x96xf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %db, %b, %d, %host : memref<96x160xf16>, memref<96x160xf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dc, %c, %d, %host : memref<200x160xf32>, memref<200x160xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dx, %x, %d, %host : memref<2x40x64xbf16>, memref<2x40x64xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dy, %y, %d, %host : memref<2x32x24xbf16>, memref<2x32x24xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dz, %z, %d, %host : memref<2x40x24xbf16>, memref<2x40x24xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dp, %p, %d, %host : memref<40x40xf32>, memref<40x40xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dr, %p, %d, %host : memref<40x40xf32>, memref<40x40xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %dq, %p, %d, %host : memref<40x40xf32>, memref<40x40xf32>, !mgpu.device, !mgpu.device
  linalg.matmul ins(%da, %db : memref<200x96xf16>, memref<96x160xf16>) outs(%dc : memref<200x160xf32>)
  %every = memref.subview %dx[0, 0, 0] [2, 40, 32] [1, 1, 2] : memref<2x40x64xbf16> to memref<2x40x32xbf16, strided<[2560, 64, 2]>>
  linalg.batch_matmul ins(%every, %dy : memref<2x40x32xbf16, strided<[2560, 64, 2]>>, memref<2x32x24xbf16>) outs(%dz : memref<2x40x24xbf16>)
  linalg.matmul ins(%dp, %dr : memref<40x40xf32>, memref<40x40xf32>) outs(%dq : memref<40x40xf32>)
  mgpu.memcpy %c, %dc, %host, %d : memref<200x160xf32>, memref<200x160xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %z, %dz, %host, %d : memref<2x40x24xbf16>, memref<2x40x24xbf16>, !mgpu.device, !mgpu.device
  mgpu.memcpy %p, %dq, %host, %d : memref<40x40xf32>, memref<40x40xf32>, !mgpu.device, !mgpu.device
  return
}
